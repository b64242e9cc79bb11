"""Whom TLS trusts: the system's authorities, or those of `AWS_CA_BUNDLE` as boto3 does."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def trusted_authorities(environ: Mapping[str, str] = os.environ) -> ssl.SSLContext:
    """Return what checks a server's certificate, alike on every Python.

    Since 3.13 the default refuses an authority that lacks what RFC 5280 asks for, as those of company proxies do, and
    trusts one in the middle of a chain; boto3's context does neither.

    Raises:
        OSError: The file that `AWS_CA_BUNDLE` names can't be read, or holds no certificate.
    """
    tls = ssl.create_default_context(cafile=environ.get("AWS_CA_BUNDLE") or None)
    tls.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    return tls
