"""The multi-cluster domain, a module a concern: kinds, registration, leases, sets, work."""
