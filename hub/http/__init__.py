"""HTTP: TLS transport, codecs, negotiation, one handler a verb, discovery, watch streams."""
