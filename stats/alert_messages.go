package stats

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// writeAlerts produces the events of alerts, as writeMessages does those of figures.
func (w *partitionWorker) writeAlerts(ctx context.Context, messages []AlertMessage) error {
	records := make([]kafka.Record, 0, len(messages))
	for _, m := range messages {
		if time.Since(m.At) > messageAge || !w.accountExists(ctx, m.Account) {
			continue
		}
		records = append(records, w.newRawRecord(m.Account, event.FormatOwn, m.Data, m.Identity))
	}

	if err := w.writeRaw(ctx, records); err != nil {
		return err
	}

	w.metrics.alerts.Add(float64(len(records)))
	return nil
}
