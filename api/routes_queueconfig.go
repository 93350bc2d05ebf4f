package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/stats"
)

// QueueConfigs stores the accounts' configurations of queues.
type QueueConfigs interface {
	// Find returns an account's last configuration and its entity tag.
	Find(ctx context.Context, account string) (config stats.QueueConfig, etag string, err error)
	// Update sets the account's configuration for rows of intervals that begin seven to 22 minutes
	// later, and returns its entity tag. ifMatch is the request's If-Match header, "" for none. It
	// returns fault.KindInvalid with the invalid fields, and fault.KindPrecondition if ifMatch does
	// not match.
	Update(ctx context.Context, account string, config stats.QueueConfig, ifMatch string) (etag string, err error)
}

const queueConfigPath = "/api/v2/config/queues"

type queueConfigRoutes struct {
	configs QueueConfigs
	audit   AuditLog
}

func (r queueConfigRoutes) handleGet(c echo.Context, account identity.Account) error {
	config, etag, err := r.configs.Find(c.Request().Context(), account.ID)
	return respondTagged(c, http.StatusOK, etag, config, err)
}

func (r queueConfigRoutes) handlePut(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	config, err := parseQueueConfig(body)
	if err != nil {
		return err
	}

	ctx := c.Request().Context()

	entry := r.audit.Entry(ctx, audit.QueueConfigUpdate, account.ID, "queue_config:"+account.ID)
	var etag string
	err = r.audit.Act(ctx, &entry, func() (err error) {
		etag, err = r.configs.Update(ctx, account.ID, config, c.Request().Header.Get("If-Match"))
		return err
	})

	return respondTagged(c, http.StatusOK, etag, config, err)
}

func parseQueueConfig(body *jsonObject) (stats.QueueConfig, error) {
	thresholds := func(o *jsonObject) stats.Thresholds {
		return stats.Thresholds{ServiceLevelSeconds: o.Int("service_level_seconds", required),
			ShortAbandonSeconds: o.Int("short_abandon_seconds", required)}
	}

	config := stats.QueueConfig{Default: thresholds(body.Object("default", required)),
		Queues: []stats.QueueThresholds{}}
	for _, queue := range body.Objects("queues", required) {
		config.Queues = append(config.Queues,
			stats.QueueThresholds{QueueID: queue.String("queue_id", required), Thresholds: thresholds(queue)})
	}

	return config, body.Err(invalidBody)
}
