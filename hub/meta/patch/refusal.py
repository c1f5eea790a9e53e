"""How kube-apiserver refuses a patch that is well formed and cannot be applied.

Owns the one 422 whose message says nothing of the cause: apiserver's ``handlers/patch.go`` builds
it with ``NewGenericServerResponse``, which keeps the text back. Here the text is the message of the
`PatchError` that the error is raised from, for logs and debuggers.
"""

from hub.meta.errors import ApiError, Resource


class PatchError(Exception):
    """Why a patch does not apply; never leaves `hub.meta.patch` but as the cause of a 422."""


def unprocessable() -> ApiError:
    """Return the 422 for a patch that does not apply."""
    return ApiError(
        code=422,
        reason="Invalid",
        message="the server rejected our request due to an error in our request",
        resource=Resource("", ""),
    )
