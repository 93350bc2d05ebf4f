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

// AIProviders stores the accounts' AI providers. What it returns has no secrets.
type AIProviders interface {
	AIProviderChanges
	Get(ctx context.Context, accountID, id string) (aiprovider.Document, error)
	List(ctx context.Context, accountID string) ([]aiprovider.Document, error)
}

// AIProviderChanges changes providers.
type AIProviderChanges interface {
	Create(ctx context.Context, accountID string, body map[string]json.RawMessage) (aiprovider.Document, error)
	Replace(ctx context.Context, accountID, id string, body map[string]json.RawMessage) (aiprovider.Document, error)
	Delete(ctx context.Context, accountID, id string) error
}

// AIProviderOpener returns a provider of any account, secrets included.
type AIProviderOpener interface {
	Open(ctx context.Context, id string) (aiprovider.Provider, error)
}

// SessionTester opens a session with a provider, sends it a tone and reports what
// happened. An error means that no session was tried.
type SessionTester interface {
	Test(ctx context.Context, p aiprovider.Provider) (aiprovider.TestReport, error)
}

const aiProvidersPath = "/api/v2/config/ai_providers"

type aiProviderRoutes struct {
	providers AIProviders
	auth      auth
}

func (r aiProviderRoutes) list(c echo.Context) error {
	account, err := r.auth.authenticateAdmin(c)
	if err != nil {
		return err
	}
	all, err := r.providers.List(c.Request().Context(), account.ID)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, struct {
		Data []aiprovider.Document `json:"data"`
	}{all})
}

func (r aiProviderRoutes) create(c echo.Context) error {
	account, body, err := r.change(c)
	if err != nil {
		return err
	}
	made, err := r.providers.Create(c.Request().Context(), account.ID, body)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", aiProvidersPath+"/"+made.ID)
	return writeJSON(c, http.StatusCreated, made)
}

func (r aiProviderRoutes) get(c echo.Context) error {
	account, err := r.auth.authenticateAdmin(c)
	if err != nil {
		return err
	}
	found, err := r.providers.Get(c.Request().Context(), account.ID, c.Param("id"))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, found)
}

func (r aiProviderRoutes) replace(c echo.Context) error {
	account, body, err := r.change(c)
	if err != nil {
		return err
	}
	put, err := r.providers.Replace(c.Request().Context(), account.ID, c.Param("id"), body)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, put)
}

func (r aiProviderRoutes) delete(c echo.Context) error {
	account, err := r.auth.authenticateAdmin(c)
	if err != nil {
		return err
	}
	if err := r.providers.Delete(c.Request().Context(), account.ID, c.Param("id")); err != nil {
		return err
	}
	return noContent(c)
}

// change reads a request that changes a provider.
func (r aiProviderRoutes) change(c echo.Context) (account identity.Account, body map[string]json.RawMessage, err error) {
	if account, err = r.auth.authenticateAdmin(c); err != nil {
		return identity.Account{}, nil, err
	}
	members, err := decode(c)
	if err != nil {
		return identity.Account{}, nil, err
	}
	body, err = members.Raw()
	return account, body, err
}

// aiTestRoute tests a provider.
type aiTestRoute struct {
	providers AIProviderOpener
	tester    SessionTester
	auth      auth
}

func (r aiTestRoute) test(c echo.Context) error {
	account, err := r.auth.authenticateAdmin(c)
	if err != nil {
		return err
	}
	provider, err := r.providers.Open(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	if provider.AccountID != account.ID {
		return providerNotFound()
	}
	report, err := r.tester.Test(c.Request().Context(), provider)
	if err != nil {
		return err
	}
	if report.Events == nil {
		report.Events = []string{} // an empty list, never null
	}
	return writeJSON(c, http.StatusOK, report)
}

func providerNotFound() error { return fault.NotFound("AI provider not found") }
