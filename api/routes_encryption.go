package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/config/encryption"
	"trunkline/identity"
	"trunkline/internal/fault"
)

// Encryption stores the accounts' recording-encryption configurations. Its results have
// secrets.
type Encryption interface {
	// Find returns an account's configuration, secrets included, and writes an audit entry of the
	// context's caller.
	Find(ctx context.Context, accountID string) (*encryption.Result, error)
	// Update applies a change, all of it or nothing, and writes an audit entry of the context's
	// caller. ifMatch is the request's If-Match header, "" for none.
	Update(ctx context.Context, accountID string, change encryption.Change, ifMatch string) (*encryption.Result, error)
}

type encryptionRoutes struct {
	encryption Encryption
	auth       auth
}

func (r encryptionRoutes) handleGet(c echo.Context, account identity.Account) error {
	answer, err := r.encryption.Find(c.Request().Context(), account.ID)
	if err != nil {
		return err
	}
	return respondTagged(c, http.StatusOK, answer.ETag, struct {
		Success bool `json:"success"`
		Config  any  `json:"config"`
	}{true, configOrEmpty(withoutSecrets(c, answer.Config))}, nil)
}

// withoutSecrets returns what the caller may see of a configuration: an auditor sees no keys
// and salts.
func withoutSecrets(c echo.Context, config *encryption.Document) *encryption.Document {
	if config == nil || callerOf(c).Role != identity.RoleAuditor {
		return config
	}
	shown := *config
	shown.Key = ""
	shown.Salt = ""
	shown.HistoricalKeys = map[string]string{}
	shown.HistoricalSalts = map[string]string{}
	return &shown
}

// configOrEmpty returns {} for an account without a configuration.
func configOrEmpty(config *encryption.Document) any {
	if config == nil {
		return struct{}{}
	}
	return config
}

func (r encryptionRoutes) handlePut(c echo.Context) error {
	_, err := accountID(c)
	if err != nil {
		return err // with its own message, not that of updateError
	}

	answer, err := r.updateFromBody(c)
	if err != nil {
		return updateError(err)
	}

	return respondTagged(c, http.StatusOK, answer.ETag, struct {
		Success bool                 `json:"success"`
		Message string               `json:"message"`
		Config  *encryption.Document `json:"config"`
	}{true, "Encryption configuration updated", answer.Config}, nil)
}

func (r encryptionRoutes) updateFromBody(c echo.Context) (*encryption.Result, error) {
	account, err := r.auth.authenticateAdmin(c)
	if err != nil {
		return nil, err
	}

	members, err := decodeRaw(c)
	if err != nil {
		return nil, err
	}

	change, err := encryption.ParseChange(members)
	if err != nil {
		return nil, err
	}

	return r.encryption.Update(c.Request().Context(), account.ID, change, c.Request().Header.Get("If-Match"))
}

// updateError returns the error of an update with the message that clients expect. A
// message about the whole body becomes an entry of errors.
func updateError(err error) error {
	f := toFault(err)
	switch f.Kind {
	case fault.KindInvalid, fault.KindForbidden, fault.KindNotFound, fault.KindInternal:
	default:
		return err
	}

	fields := f.Fields
	if f.Kind == fault.KindInvalid && len(fields) == 0 {
		fields = []fault.Field{{Field: "body", Code: "invalid", Message: f.Message}}
	}

	return &fault.Error{Kind: f.Kind, Message: encryption.MessageUpdateFailed, Fields: fields, Cause: err}
}
