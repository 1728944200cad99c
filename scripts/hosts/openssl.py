"""Keys and certificates, made and read by the openssl program.

EC P-256 keys; a certificate's role is the one URI among its alternative names,
spiffe://CLUSTER/job/worker/task/1 or spiffe://CLUSTER/role/viewer.
"""

import collections
import datetime
import ipaddress
import os
import subprocess
import tempfile

from base import cluster_file
from base.failure import Failure

# A peer's clock may be so far behind ours.
SKEW = datetime.timedelta(minutes=5)
TIME = "%Y%m%d%H%M%SZ"
CONFIG = """
[ca]
default_ca = authority
[authority]
database = {folder}/index
new_certs_dir = {folder}
default_md = sha256
policy = names
rand_serial = yes
unique_subject = no
copy_extensions = none
[names]
commonName = supplied
[req]
distinguished_name = subject
prompt = no
utf8 = yes
[subject]
CN = {name}
[extensions]
subjectKeyIdentifier = hash
{extensions}
subjectAltName = {alternatives}
"""
OF_AUTHORITY = """basicConstraints = critical,CA:TRUE,pathlen:0
keyUsage = critical,keyCertSign,cRLSign"""
OF_LEAF = """basicConstraints = critical,CA:FALSE
authorityKeyIdentifier = keyid:always
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth"""

# Its URIs, the other names that a peer may dial, its end (UTC).
Certificate = collections.namedtuple("Certificate", "uris addresses not_after")


def run(*arguments):
    """What openssl prints. Raises Failure with its complaint."""
    try:
        done = subprocess.run(
            ["openssl", *arguments], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failure("cannot start openssl: %s (Debian: apt install openssl)" %
                      error, exit_code=1) from None
    if done.returncode != 0:
        raise Failure("openssl %s: %s" % (
            arguments[0], (done.stderr or done.stdout).strip()[-2000:]),
            exit_code=1)
    return done.stdout


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def _sign(stem, name, alternatives, days, authority):
    """Makes STEM.key and STEM.pem. `authority`: a stem, or None (itself)."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "config")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(
                folder=folder, name=name, alternatives=",".join(alternatives),
                extensions=OF_LEAF if authority else OF_AUTHORITY))
        open(os.path.join(folder, "index"), "w", encoding="utf-8").close()
        request = os.path.join(folder, "request")
        run("genpkey", "-algorithm", "EC", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-out", stem + ".key")
        os.chmod(stem + ".key", 0o600)
        run("req", "-new", "-config", config, "-key", stem + ".key", "-out",
            request)
        begin = now() - SKEW
        end = begin + SKEW + datetime.timedelta(days=days)
        run("ca", "-batch", "-notext", "-config", config, "-in", request,
            "-out", stem + ".pem", "-extensions", "extensions",
            "-startdate", begin.strftime(TIME), "-enddate", end.strftime(TIME),
            "-keyfile", (authority or stem) + ".key",
            *(["-cert", authority + ".pem"] if authority else ["-selfsign"]))
        os.chmod(stem + ".pem", 0o644)


def make_authority(stem, cluster, days):
    _sign(stem, "muster authority of " + cluster, ["URI:spiffe://" + cluster],
          days, authority=None)


def make_leaf(stem, name, uri, addresses, days, authority):
    """`addresses`: host names and IP addresses."""
    _sign(stem, name, ["URI:" + uri] + [
        ("IP:" if cluster_file.is_ip(one) else "DNS:") + one.rstrip(".")
        for one in addresses], days, authority)


def read(path):
    """The Certificate in the file."""
    text = run("x509", "-in", path, "-noout", "-enddate", "-dateopt",
               "iso_8601", "-ext", "subjectAltName")
    found = Certificate([], [], None)
    for part in text.replace("\n", ",").split(","):
        kind, _, value = part.strip().partition(":")
        if kind == "URI":
            found.uris.append(value)
        elif kind in ("DNS", "IP Address"):
            found.addresses.append(
                str(ipaddress.ip_address(value)) if kind != "DNS" else value)
        elif kind.startswith("notAfter="):
            end = datetime.datetime.strptime(
                part.strip(), "notAfter=%Y-%m-%d %H:%M:%SZ")
            found = found._replace(
                not_after=end.replace(tzinfo=datetime.timezone.utc))
    return found


def complaint(path, authority):
    """Why `authority` (a file) does not vouch for the certificate, or None."""
    purposes = ("any",) if path == authority else ("sslserver", "sslclient")
    try:
        for purpose in purposes:
            run("verify", "-CAfile", authority, "-x509_strict", "-purpose",
                purpose, path)
    except Failure as failure:
        return str(failure).replace("\n", "; ")
    return None


def is_pair(certificate, key):
    """Whether the key is that of the certificate."""
    return run("x509", "-in", certificate, "-noout", "-pubkey") == run(
        "pkey", "-in", key, "-pubout")


def covers(path, host):
    """Whether the certificate is of this host name or IP address. Names in
    certificates have no final dot."""
    flag = "-checkip" if cluster_file.is_ip(host) else "-checkhost"
    return "does match" in run("x509", "-in", path, "-noout", flag,
                               host.rstrip("."))
