"""What an endpoint answers, byte by byte: HTTP/1.1, AWS event stream, token lines. Each parser accepts any split."""
