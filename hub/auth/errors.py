"""What can go wrong with credentials, before it becomes an answer.

    AuthError
        IdentityError        the hub's own CAs and keys: damaged, or a name no certificate can carry
        CsrError             a certificate signing request that must not be signed
        TokenError           a bearer token that proves nothing
            SpentTokenError  one of the hub's own that is not good here and now

The registry turns `CsrError` into 422 or a Failed condition; `Authenticator` turns `TokenError`
into 401.
"""


class AuthError(Exception):
    """The root of this tree; the message says which field is wrong and what would be right."""


class IdentityError(AuthError):
    """The hub's identity cannot be built or loaded."""


class CsrError(AuthError):
    """A certificate signing request is malformed, or asks for what the signer does not give."""


class TokenError(AuthError):
    """A bearer token is malformed, forged, expired, or belongs to something that is gone."""


class SpentTokenError(TokenError):
    """The token is the hub's own and is expired, for another audience, or its object is gone.

    Its message may be told to whoever may review tokens.
    """
