package callrecording

import (
	"context"
	"embed"
	"encoding/json"
	"time"

	"trunkline/audit"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Accounts knows the accounts above an account.
type Accounts interface {
	// Path returns the account, its parent, and so on to its root.
	Path(accountID string) []string
}

// Service stores the policies of accounts. It is safe for concurrent use.
type Service struct {
	db       *sqldb.DB
	accounts Accounts
	audit    *audit.Log
}

// New migrates the table.
func New(ctx context.Context, db *sqldb.DB, accounts Accounts, auditLog *audit.Log) (*Service, error) {
	if err := db.Migrate(ctx, "callrecording", migrations); err != nil {
		return nil, err
	}
	return &Service{db: db, accounts: accounts, audit: auditLog}, nil
}

// FoundPolicy is an account's policy.
type FoundPolicy struct {
	Policy        *Policy // nil: neither the account nor one above it has one
	PolicyAccount string  // the account that has it
	ETag          string  // of the policy, also of none
}

// Find returns the policy that holds for an account.
func (s *Service) Find(ctx context.Context, accountID string) (FoundPolicy, error) {
	for _, id := range s.accounts.Path(accountID) {
		text, err := s.read(ctx, s.db, id)
		if err != nil {
			return FoundPolicy{}, err
		}

		if text == "" {
			continue
		}

		policy := new(Policy)
		if err := json.Unmarshal([]byte(text), policy); err != nil {
			return FoundPolicy{}, fault.Internal(err, "the stored recording policy cannot be read")
		}

		return FoundPolicy{Policy: policy, PolicyAccount: id, ETag: entitytag.Of(id, text)}, nil
	}

	return FoundPolicy{ETag: entitytag.Of("")}, nil
}

// Policy returns the policy that holds for an account, the zero value where there is none.
func (s *Service) Policy(ctx context.Context, accountID string) (Policy, error) {
	found, err := s.Find(ctx, accountID)
	if err != nil || found.Policy == nil {
		return Policy{}, err
	}
	found.Policy.PolicyAccount = found.PolicyAccount
	return *found.Policy, nil
}

// Update sets an account's own policy. ifMatch is the request's If-Match header, "" for none:
// fault.KindPrecondition if the policy that holds now does not match it. Returns
// fault.KindInvalid with the invalid fields.
func (s *Service) Update(ctx context.Context, accountID string, policy Policy, ifMatch string) (FoundPolicy, error) {
	if err := policy.check(); err != nil {
		return FoundPolicy{}, err
	}

	old, err := s.Find(ctx, accountID)
	if err != nil {
		return FoundPolicy{}, err
	}

	if err := entitytag.Require(ifMatch, old.ETag); err != nil {
		return FoundPolicy{}, err
	}

	text, err := json.Marshal(policy)
	if err != nil {
		return FoundPolicy{}, fault.Internal(err, "writing the recording policy failed")
	}

	entry := s.audit.Entry(ctx, audit.CallRecordingUpdate, accountID, "call_recording:"+string(policy.Mode))
	err = audit.Tx(ctx, s.audit, s.db.BulkTx, &entry, func(tx *sqldb.BulkTx) error {
		own, err := s.read(ctx, tx, accountID)
		if err != nil {
			return err
		}

		if ifMatch != "" && own != "" && entitytag.Of(accountID, own) != old.ETag { // changed since
			return entitytag.Require(ifMatch, entitytag.Of(accountID, own))
		}

		_, err = tx.ExecContext(ctx,
			`INSERT INTO call_recording_policies (account_id, policy, updated_at) VALUES ($1, $2, $3)
			ON CONFLICT (account_id) DO UPDATE SET policy = excluded.policy, updated_at = excluded.updated_at`,
			accountID, string(text), time.Now().UnixMilli())

		return err
	})
	if err != nil {
		return FoundPolicy{}, sqldb.Wrap(err, "storing a recording policy")
	}

	return FoundPolicy{Policy: &policy, PolicyAccount: accountID, ETag: entitytag.Of(accountID, string(text))}, nil
}

// read returns an account's own policy as JSON, "" if it has none.
func (s *Service) read(ctx context.Context, from sqldb.Runner, accountID string) (text string, err error) {
	rows, err := from.QueryContext(ctx, `SELECT policy FROM call_recording_policies WHERE account_id = $1`, accountID)
	found, err := sqldb.Collect(rows, err, "reading a recording policy", sqldb.ScanColumn[string])
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// PurgeAccount deletes the policy of a deleted account.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	n, err = s.db.ExecWithoutTx(ctx, `DELETE FROM call_recording_policies WHERE account_id = $1`, accountID)
	return n, sqldb.Wrap(err, "purging a recording policy")
}
