"""Controllers that any Kubernetes hub needs: namespaces, the client certificate signer."""
