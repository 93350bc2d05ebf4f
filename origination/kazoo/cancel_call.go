package kazoo

import (
	"context"
	"errors"
	"net/http"

	"trunkline/internal/fault"
)

// Cancel implements origination.Driver. A call without a channel is hung up when one appears.
func (d *Driver) Cancel(ctx context.Context, callID string) error {
	c := d.findCall(callID)
	if c == nil {
		return fault.NotFound("There is no such call")
	}
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()

	err := d.hangUp(ctx, c)
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}

	c.cancelled = true
	return nil
}

func (d *Driver) hangUp(ctx context.Context, c *call) error {
	return d.request(ctx, http.MethodPost, d.channelPath(c), map[string]string{"action": "hangup"}, nil)
}
