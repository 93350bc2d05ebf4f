package webhook

import (
	"context"
	"time"

	"trunkline/audit"
	"trunkline/event"
)

// TestResult is what a receiver answered to an example event.
type TestResult struct {
	OK       bool
	Duration time.Duration
	Message  string // why it failed, for the account's administrator; "" when OK
}

// Test sends an example event to a webhook's URL, signed and in its format, beside its backlog:
// neither its positions nor its failures change.
func (s *Service) Test(ctx context.Context, accountID, id string) (TestResult, error) {
	r, err := selectRow(ctx, s.db, accountID, id)
	if err != nil {
		return TestResult{}, err
	}

	h := &loadedWebhook{webhookRow: r}
	h.key, err = openKey(s.keys, &r)
	if err != nil {
		return TestResult{}, err
	}

	err = s.audit.Record(ctx, s.audit.Entry(ctx, audit.WebhookTest, accountID, "webhook:"+id))
	if err != nil {
		return TestResult{}, err
	}

	sender := s.newSender()
	defer sender.close()

	began := time.Now()
	o := sender.send(ctx, h, exampleDelivery(accountID, began))
	if o.unsent {
		return TestResult{}, ctx.Err()
	}

	return TestResult{OK: o.ok, Duration: time.Since(began), Message: o.message}, nil
}

// exampleDelivery returns an event of the account that is not in the log.
func exampleDelivery(accountID string, at time.Time) *delivery {
	id := event.NextID(0, at.UnixMilli(), 0)
	m := event.Message{ID: id, Type: event.Custom, AccountID: accountID, Timestamp: at.Unix(),
		Data: []byte(`{"event":"webhook.test"}`),
		Metadata: event.Metadata{Source: "trunkline", OriginalFormat: event.FormatOwn, ProcessedAt: at.Unix(),
			Facts: event.Facts{Name: event.NameOther}}}
	return &delivery{id: id, account: accountID, message: m.Append(nil)}
}
