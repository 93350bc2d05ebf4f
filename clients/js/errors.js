/** The base of all errors of this client. */
export class TrunklineError extends Error {
  /** @param {string} message @param {object} [options] */
  constructor(message, { permanent = false, code = 0, status = 0, retryAfter = 0, errors = [], cause } = {}) {
    super(message, { cause });
    this.name = new.target.name;
    this.permanent = permanent; // a retry would fail in the same way
    this.code = code; // close code of the channel; 0: none
    this.status = status; // HTTP status; 0: none
    this.retryAfter = retryAfter; // ms, from Retry-After
    this.errors = errors; // of fields: {field, code, message}
  }
}

/** The connection ended with a close code of the channel. */
export class ClosedError extends TrunklineError {}
export class GoingAwayError extends ClosedError {}
export class MisuseError extends ClosedError {}
export class ServerFaultError extends ClosedError {}
export class RestartError extends ClosedError {}
export class TokenExpiredError extends ClosedError {}
export class AccessRevokedError extends ClosedError {}
export class TooSlowError extends ClosedError {}
export class ReplacedError extends ClosedError {}

/** The login was refused with an HTTP status. */
export class LoginRefusedError extends TrunklineError {}
/** The stream or the snapshot was refused with an HTTP status. */
export class RefusedError extends TrunklineError {}
/** 410: the log no longer has the events after the position. */
export class PositionGoneError extends RefusedError {}
/** The connection broke, or could not be opened. */
export class ConnectionLostError extends TrunklineError {}
/** The server's certificate is not trusted. */
export class CertificateError extends TrunklineError {}
/** The server violated the protocol. */
export class ProtocolError extends TrunklineError {}

const closeErrors = {
  1001: GoingAwayError, 1008: MisuseError, 1011: ServerFaultError, 1012: RestartError,
  4001: TokenExpiredError, 4003: AccessRevokedError, 4008: TooSlowError, 4009: ReplacedError,
};
const permanentCodes = [1008, 4003, 4009];

/** Returns the error of a close code. */
export function closeError(code, reason) {
  return new (closeErrors[code] ?? ClosedError)(`closed with ${code}: ${reason}`, { code, permanent: permanentCodes.includes(code) });
}

/** Returns the error of an HTTP response that is not 200. */
export async function refusal(step, response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // The body of a proxy's response may not be JSON: then only the status counts.
  }
  const { status } = response;
  const kind = step === "login" ? LoginRefusedError : status === 410 ? PositionGoneError : RefusedError;
  const seconds = Number(response.headers.get("Retry-After"));
  return new kind(`${step} refused: ${status} ${body?.message ?? ""}`.trimEnd(), {
    status,
    errors: body?.errors ?? [],
    retryAfter: seconds > 0 ? seconds * 1000 : 0,
    permanent: status < 500 && status !== 429 && !(status === 401 && step !== "login"),
  });
}

const certificateCodes = /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|ERR_TLS_CERT_)/;

/** Returns the error of a request without a response. */
export function networkError(error) {
  if (certificateCodes.test(error?.cause?.code ?? "")) {
    return new CertificateError(`the server's certificate is not trusted: ${error.cause.message}`, { permanent: true, cause: error });
  }
  return new ConnectionLostError(`no connection: ${error?.cause?.message ?? error?.message ?? error}`, { cause: error });
}
