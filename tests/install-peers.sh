#!/bin/sh
# Installs the programs that the end-to-end tests run inside the sandbox or beside it. As root it installs what is
# missing; as an ordinary user it only says what is missing (the tests then skip those cases, with the reason).
# usage: tests/install-peers.sh [--check] [--no-npm]
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
peers="${RINGFENCE_TEST_PEERS:-$here/../target/test-peers}"
check=no npm=yes
for a in "$@"; do
    case "$a" in
        --check) check=yes ;;
        --no-npm) npm=no ;;
        *) echo "usage: tests/install-peers.sh [--check] [--no-npm]" >&2; exit 2 ;;
    esac
done
[ "$(id -u)" = 0 ] || check=yes

# program or file that shows that the package is there : Debian package
table="
bwrap:bubblewrap
socat:socat
ip:iproute2
nsenter:util-linux
setpriv:util-linux
script:bsdutils
sshd:openssh-server
ssh:openssh-client
git:git
tmux:tmux
vim:vim
less:less
sqlite3:sqlite3
gdb:gdb
make:make
gcc:gcc
curl:curl
wget:wget
ping:iputils-ping
ps:procps
tput:ncurses-bin
crontab:cron
sudo:sudo
openssl:openssl
python3:python3
/usr/lib/python3/dist-packages/pytest:python3-pytest
/usr/lib/python3.*/ensurepip:python3-venv
node:nodejs
npm:npm
javac:default-jdk-headless
mvn:maven
/usr/lib/postgresql/*/bin/initdb:postgresql
"

present() {
    case "$1" in
        /*) for f in $1; do [ -e "$f" ] && return 0; done; return 1 ;;
        *) PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing=""
for row in $table; do
    present "${row%%:*}" || missing="$missing ${row##*:}"
done
missing=$(printf '%s\n' $missing | sort -u | tr '\n' ' ')

if [ -n "${missing# }" ] && [ "$check" = no ]; then
    echo "install-peers: installing $missing"
    export DEBIAN_FRONTEND=noninteractive
    # A server that a package brings must not be started: the tests start their own.
    policy=/usr/sbin/policy-rc.d made=no
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' > "$policy"; chmod 755 "$policy"; made=yes
    fi
    log=$(mktemp)
    rc=0
    { apt-get update && apt-get install -y --no-install-recommends $missing; } > "$log" 2>&1 || rc=$?
    if [ "$rc" != 0 ]; then
        # One package that cannot be had must not take the others with it.
        for p in $missing; do
            apt-get install -y --no-install-recommends "$p" >> "$log" 2>&1 || echo "install-peers: could not install $p"
        done
    fi
    [ "$made" = yes ] && rm -f "$policy"
    [ "$rc" = 0 ] || tail -n 5 "$log"
    rm -f "$log"
elif [ -n "${missing# }" ]; then
    echo "install-peers: missing: $missing"
else
    echo "install-peers: all Debian packages are there"
fi

# The agents as npm ships them, for the test only; no version is pinned on purpose: what users get is what is tested.
agent() { # package, program
    if [ -x "$peers/node_modules/.bin/$2" ]; then
        echo "install-peers: $2 is there"
    elif [ "$npm" = no ] || ! command -v npm >/dev/null 2>&1; then
        echo "install-peers: missing: $1"
    else
        mkdir -p "$peers"
        echo "install-peers: installing $1 into $peers"
        npm install --prefix "$peers" --no-audit --no-fund --loglevel error "$1" || echo "install-peers: could not install $1"
    fi
}
agent @anthropic-ai/claude-code claude
agent @openai/codex codex
exit 0
