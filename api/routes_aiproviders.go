package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/config/aiprovider"
	"trunkline/identity"
	"trunkline/internal/fault"
)

// AIProviders stores the accounts' AI providers. Its results have no secrets.
type AIProviders interface {
	AIProviderChanges
	// Find returns one provider of the account, masked.
	Find(ctx context.Context, accountID, id string) (aiprovider.Document, error)
	// List returns every provider of the account, masked, the oldest first. It is never nil.
	List(ctx context.Context, accountID string) ([]aiprovider.Document, error)
}

// AIProviderChanges changes providers.
type AIProviderChanges interface {
	// Create creates a provider of the account from a request's body, and writes an audit entry of
	// the context's caller.
	Create(ctx context.Context, accountID string, body map[string]json.RawMessage) (aiprovider.Document, error)
	// Update replaces a provider by that of a request's body. A header whose value is the mask keeps
	// the stored value. Returns fault.KindInvalid for such a header if the URL has another origin
	// (scheme, host, port) than the stored one.
	Update(ctx context.Context, accountID, id string, body map[string]json.RawMessage) (aiprovider.Document, error)
	// Delete deletes a provider of the account.
	Delete(ctx context.Context, accountID, id string) error
}

// AIProviderOpener returns a provider of any account, secrets included.
type AIProviderOpener interface {
	// Open returns a provider of any account with its headers unsealed, for a connection to it. It
	// costs one database query.
	Open(ctx context.Context, id string) (aiprovider.Provider, error)
}

// SessionTester opens a session with a provider, sends it a tone and returns a report. An
// error means that it did not try to open a session.
type SessionTester interface {
	// TestProvider opens a session, sends a tone of one second and returns a report. The error is set only
	// for failures on our side; failures of the provider are in the report.
	TestProvider(ctx context.Context, p aiprovider.Provider) (aiprovider.TestReport, error)
}

const aiProvidersPath = "/api/v2/config/ai_providers"

type aiProviderRoutes struct{ providers AIProviders }

// handleList answers a request without parameters with the whole list, as the specification has it.
func (r aiProviderRoutes) handleList(c echo.Context, account identity.Account) error {
	providers, err := r.providers.List(c.Request().Context(), account.ID)
	if err == nil && len(c.QueryParams()) > 0 {
		return writePage(c, providers, func(p aiprovider.Document) string { return p.Name + "\x00" + p.ID },
			func(p aiprovider.Document) []string { return []string{p.ID, p.Name, p.WebSocket.URL} },
			func(p aiprovider.Document) aiprovider.Document { return p })
	}
	return respond(c, http.StatusOK, struct {
		Data []aiprovider.Document `json:"data"`
	}{providers}, err)
}

func (r aiProviderRoutes) handleCreate(c echo.Context, account identity.Account) error {
	body, err := decodeRaw(c)
	if err != nil {
		return err
	}

	created, err := r.providers.Create(c.Request().Context(), account.ID, body)
	if err != nil {
		return err
	}

	c.Response().Header().Set("Location", aiProvidersPath+"/"+created.ID)
	return writeJSON(c, http.StatusCreated, created)
}

func (r aiProviderRoutes) handleGet(c echo.Context, account identity.Account) error {
	found, err := r.providers.Find(c.Request().Context(), account.ID, c.Param("id"))
	return respond(c, http.StatusOK, found, err)
}

func (r aiProviderRoutes) handleReplace(c echo.Context, account identity.Account) error {
	body, err := decodeRaw(c)
	if err != nil {
		return err
	}
	updated, err := r.providers.Update(c.Request().Context(), account.ID, c.Param("id"), body)
	return respond(c, http.StatusOK, updated, err)
}

func (r aiProviderRoutes) handleDelete(c echo.Context, account identity.Account) error {
	return noContent(c, r.providers.Delete(c.Request().Context(), account.ID, c.Param("id")))
}

// aiTestRoute tests a provider.
type aiTestRoute struct {
	providers AIProviderOpener
	tester    SessionTester
}

func (r aiTestRoute) handleTest(c echo.Context, account identity.Account) error {
	provider, err := r.providers.Open(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}

	if provider.AccountID != account.ID {
		return providerNotFound()
	}

	report, err := r.tester.TestProvider(c.Request().Context(), provider)
	if err != nil {
		return err
	}

	if report.Events == nil {
		report.Events = []string{} // an empty list, never null
	}

	return writeJSON(c, http.StatusOK, report)
}

func providerNotFound() error { return fault.NotFound("AI provider not found") }
