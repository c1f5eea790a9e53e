"""Who may do what: hub identity (CAs, keys), client certificates, tokens, RBAC."""
