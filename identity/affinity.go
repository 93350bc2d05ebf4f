package identity

import (
	"context"
	"time"
)

// The header parameters of a channel token that balancers hash, so that subscribers
// of the same events meet on one node. Nothing else reads them, and a token without
// them is valid. They are in the header because it, unlike the claims, is the same
// in all tokens of an account and a signing key: a balancer that cannot decode
// base64url hashes the token up to its first dot.
const (
	headerAccount   = "account"   // whose events the token is for
	headerPartition = "partition" // in which new events of the account lie; a number
)

// partitionWait bounds the wait for Kafka in a login.
const partitionWait = 200 * time.Millisecond

// ChannelAccount returns the account whose events the principal's channel token is
// for: the one that its filter names, else its own.
func (p *Principal) ChannelAccount() string { return channelAccount(p.AccountID, p.Filter) }

func channelAccount(own string, f Filter) string {
	if len(f.AccountIDs) == 1 {
		return f.AccountIDs[0]
	}
	return own
}

// affinityOf returns the header parameters of a channel token for a user or key of
// the account own. While Kafka does not answer there is no partition.
func (s *Service) affinityOf(ctx context.Context, own string, f Filter) map[string]any {
	account := channelAccount(own, f)
	header := map[string]any{headerAccount: account}
	if s.cfg.Partition != nil {
		ctx, cancel := context.WithTimeout(ctx, partitionWait)
		defer cancel()
		if partition, err := s.cfg.Partition(ctx, account); err == nil {
			header[headerPartition] = partition
		}
	}
	return header
}
