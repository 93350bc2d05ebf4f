package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// AccountPartition is a record of cc.accounts. With an account, it states that the partition
// of cc.evt has events of the account, none of them before Offset. Without an account,
// it states that every account with events from Offset on has a record for the
// partition.
//
// The normalizer writes a record before the first event that it covers, so a reader
// that has read cc.accounts has the partitions of every event in cc.evt.
type AccountPartition struct {
	AccountID string `json:"account_id,omitempty"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
}

// Key returns the key of the record.
func (p AccountPartition) Key() string { return p.AccountID + "|" + strconv.Itoa(p.Partition) }

// Value returns the value of the record.
func (p AccountPartition) Value() []byte {
	value, _ := json.Marshal(p) // marshalling strings and numbers cannot fail
	return value
}

// ParseAccountPartition parses a record of cc.accounts.
func ParseAccountPartition(key, value []byte) (AccountPartition, error) {
	var p AccountPartition
	if err := json.Unmarshal(value, &p); err != nil {
		return p, fmt.Errorf("reading an account's partition: %w", err)
	}

	account, _, _ := strings.Cut(string(key), "|")
	if p.Key() != string(key) || account != "" && !ValidAccountID(account) ||
		p.Partition < 0 || p.Partition >= MaxPartitions || p.Offset < 0 {
		return p, errAccountPartition
	}

	return p, nil
}

var errAccountPartition = errors.New("not a partition of an account")
