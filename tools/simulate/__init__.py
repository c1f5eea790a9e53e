"""The fleet simulator: many OCM agents (v1.3) on the real wire, in one process.

It reaches the hub over the network only, as agents and an administrator's client do. The way in is
`cli.simulate`; `fleet` runs it, `agent` is one managed cluster, `administrator` the person who lets
it in, `session` and `reflector` are the client machinery, `report` what comes out.
"""
