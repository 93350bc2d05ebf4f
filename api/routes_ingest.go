package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/ingest"
)

// Ingest durably stores the events or call records in a request's body.
type Ingest interface {
	// Accept stores a body. A nil error means that Kafka has all of its records. An error means
	// that this request stored nothing of the body, with two exceptions: after
	// fault.KindUnavailable some or all of it may be stored, and for a record above its topic's
	// size limit (fault.KindTooLarge) the records within the limit are stored.
	Accept(ctx context.Context, r ingest.Request) (ingest.Result, error)
}

type ingestRoutes struct{ ingest Ingest }

func (i ingestRoutes) handleAccept(c echo.Context, caller *identity.Principal) error {
	r := c.Request()
	result, err := i.ingest.Accept(r.Context(), ingest.Request{
		Format:          c.Param("format"),
		ContentType:     r.Header.Get("Content-Type"),
		ContentEncoding: strings.Join(r.Header.Values("Content-Encoding"), ","),
		ContentLength:   r.ContentLength,
		Body:            r.Body,
		Caller:          caller,
		Trace:           r.Header.Get("traceparent"),
		IdempotencyKey:  r.Header.Get("Idempotency-Key"),
	})
	if err != nil {
		return err
	}

	if result.Replayed {
		c.Response().Header().Set("Idempotent-Replayed", "true")
	}

	return writeJSON(c, http.StatusAccepted, struct {
		Accepted int `json:"accepted"`
	}{result.Accepted})
}
