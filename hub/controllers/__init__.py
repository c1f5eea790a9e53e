"""Controllers that any Kubernetes hub needs: work queues, namespaces, the client certificate
signer.
"""
