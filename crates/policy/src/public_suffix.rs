//! Names below which anybody can have a name: a wildcard there covers strangers.
//!
//! This is a selection, not the whole public suffix list: it exists so that a rule which is too wide by mistake is
//! refused, and every one-label name is too wide anyhow. What it misses is a rule that somebody wrote on purpose.

/// Second-level labels under which registries of two-letter countries sell names (`co.uk`, `com.au`, `or.jp` ...).
const COUNTRY_SECOND_LEVEL: &[&str] = &[
    "ac", "asn", "co", "com", "ed", "edu", "firm", "gen", "go", "gob", "gouv", "gov", "govt", "gr", "id", "ind",
    "info", "iwi", "ltd", "maori", "me", "mil", "name", "ne", "net", "nhs", "nic", "nom", "or", "org", "plc", "police",
    "pro", "sch", "school", "web",
];

/// Hosting domains whose customers choose the label below.
const HOSTING: &[&str] = &[
    "github.io",
    "githubusercontent.com",
    "gitlab.io",
    "bitbucket.io",
    "codeberg.page",
    "pages.dev",
    "workers.dev",
    "r2.dev",
    "vercel.app",
    "now.sh",
    "netlify.app",
    "herokuapp.com",
    "fly.dev",
    "onrender.com",
    "railway.app",
    "up.railway.app",
    "deno.dev",
    "surge.sh",
    "glitch.me",
    "repl.co",
    "replit.app",
    "replit.dev",
    "web.app",
    "firebaseapp.com",
    "firebaseio.com",
    "appspot.com",
    "run.app",
    "cloudfunctions.net",
    "storage.googleapis.com",
    "googleapis.com",
    "azurewebsites.net",
    "azurestaticapps.net",
    "azurefd.net",
    "azureedge.net",
    "blob.core.windows.net",
    "core.windows.net",
    "windows.net",
    "cloudapp.net",
    "cloudapp.azure.com",
    "trafficmanager.net",
    "amazonaws.com",
    "s3.amazonaws.com",
    "elb.amazonaws.com",
    "execute-api.amazonaws.com",
    "lambda-url.on.aws",
    "on.aws",
    "cloudfront.net",
    "elasticbeanstalk.com",
    "awsapprunner.com",
    "amplifyapp.com",
    "digitaloceanspaces.com",
    "ondigitalocean.app",
    "linodeobjects.com",
    "backblazeb2.com",
    "wasabisys.com",
    "supabase.co",
    "supabase.in",
    "ngrok.io",
    "ngrok.app",
    "ngrok.dev",
    "ngrok-free.app",
    "ngrok-free.dev",
    "trycloudflare.com",
    "loca.lt",
    "localtunnel.me",
    "serveo.net",
    "lhr.life",
    "ts.net",
    "duckdns.org",
    "no-ip.org",
    "ddns.net",
    "dyndns.org",
    "nip.io",
    "sslip.io",
    "xip.io",
    "blogspot.com",
    "wordpress.com",
    "wixsite.com",
    "webflow.io",
    "myshopify.com",
    "readthedocs.io",
    "gitbook.io",
    "notion.site",
    "neocities.org",
    "tumblr.com",
    "weebly.com",
    "hf.space",
    "huggingface.space",
    "streamlit.app",
    "gradio.live",
    "modal.run",
    "val.run",
    "pipedream.net",
    "requestbin.net",
    "webhook.site",
    "beeceptor.com",
    "oast.fun",
    "oast.pro",
    "oast.live",
    "oast.site",
    "oast.online",
    "oast.me",
    "interact.sh",
    "burpcollaborator.net",
    "oastify.com",
    "r.cloudns.be",
    "fastly.net",
    "global.ssl.fastly.net",
    "akamaized.net",
    "akamaihd.net",
    "edgekey.net",
    "edgesuite.net",
    "b-cdn.net",
    "cdn77.org",
    "stackblitz.io",
    "webcontainer.io",
    "csb.app",
    "gitpod.io",
    "github.dev",
    "githubpreview.dev",
    "app.github.dev",
    "devtunnels.ms",
    "ngrok.pro",
    "pythonanywhere.com",
    "in-addr.arpa",
    "ip6.arpa",
];

/// Whether anybody can have a name directly below `name`, which is in canonical form.
pub(crate) fn is_public_suffix(name: &str) -> bool {
    match name.split_once('.') {
        None => true,
        Some((second, country)) if country.len() == 2 && COUNTRY_SECOND_LEVEL.contains(&second) => true,
        Some(_) => is_shared_hosting(name),
    }
}

/// Whether strangers share this domain: each customer of the service has a name below it.
pub(crate) fn is_shared_hosting(name: &str) -> bool {
    HOSTING.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes() {
        for name in ["com", "localhost", "co.uk", "com.au", "or.jp", "org.uk", "github.io", "s3.amazonaws.com"] {
            assert!(is_public_suffix(name), "{name}");
        }
        for name in ["example.com", "example.co.uk", "anthropic.com", "github.com", "co.example", "me.com"] {
            assert!(!is_public_suffix(name), "{name}");
        }
    }
}
