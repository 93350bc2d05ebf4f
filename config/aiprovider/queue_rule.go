package aiprovider

import (
	"context"
	"encoding/json"
	"fmt"

	"trunkline/internal/sqldb"
)

// QueueRule has a provider of the mode listen listen to every call of some queues.
type QueueRule struct {
	ProviderID string
	AccountID  string   // of the provider: the queues are its, or of the accounts below it
	Queues     []string // never empty
}

// ListRules returns the rules of all accounts.
func (s *Service) ListRules(ctx context.Context) ([]QueueRule, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, account_id, queues FROM ai_providers
		WHERE queues <> '' AND queues <> '[]' AND mode = $1 ORDER BY id`, string(ModeListen))
	return sqldb.Collect(rows, err, "reading the queues that AI providers hear",
		func(scan sqldb.ScanFunc) (r QueueRule, err error) {
			var queues string
			err = scan(&r.ProviderID, &r.AccountID, &queues)
			if err == nil {
				r.Queues, err = decodeQueues(r.ProviderID, queues)
			}
			return r, err
		})
}

// encodeQueues returns the column of a document's queues; nil: not sent.
func encodeQueues(queues []string) (string, error) {
	if queues == nil {
		return "", nil
	}
	text, err := json.Marshal(queues)
	if err != nil {
		return "", fmt.Errorf("encoding the queues: %w", err)
	}
	return string(text), nil
}

func decodeQueues(providerID, text string) (queues []string, err error) {
	if text == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &queues)
	if err != nil {
		return nil, damaged(fmt.Errorf("queues of AI provider %s: %w", providerID, err))
	}
	return queues, nil
}
