"""The codecs: HTTP/1.1 on httptools, HTTP/2 on ngh2 (nghttp2) and on python-hyper's h2.

Each in both roles. Only the modules in here import a protocol library.
"""
