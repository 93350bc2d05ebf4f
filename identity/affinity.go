package identity

import (
	"context"
	"time"
)

// Header parameters of a channel token that balancers hash, so that subscribers of the
// same events are connected to the same node. Nothing else reads them, and a token
// without them is valid. They are in the header because it, unlike the claims, is the
// same in all tokens of an account and a signing key: a balancer that cannot decode
// base64url hashes the token up to its first dot.
const (
	headerAccount   = "account"   // account of the events that the token selects
	headerPartition = "partition" // partition of the account's new events; a number
)

// partitionTimeout bounds the query of the partition during a login.
const partitionTimeout = 200 * time.Millisecond

// ChannelAccount returns the account of the events that the principal's channel token
// selects: the only account of its filter, else the principal's own.
func (p *Principal) ChannelAccount() string { return selectedAccount(p.AccountID, p.Filter) }

func selectedAccount(ownAccount string, f Filter) string {
	if len(f.AccountIDs) == 1 {
		return f.AccountIDs[0]
	}
	return ownAccount
}

// affinityHeader returns the header parameters of a channel token for a user or key of
// ownAccount. It omits the partition if Kafka does not return it within
// partitionTimeout.
func (s *Service) affinityHeader(ctx context.Context, ownAccount string, f Filter) map[string]any {
	account := selectedAccount(ownAccount, f)
	header := map[string]any{headerAccount: account}
	if s.cfg.PartitionOf != nil {
		ctx, cancel := context.WithTimeout(ctx, partitionTimeout)
		defer cancel()
		partition, err := s.cfg.PartitionOf(ctx, account)
		if err == nil {
			header[headerPartition] = partition
		}
	}
	return header
}
