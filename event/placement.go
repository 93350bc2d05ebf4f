package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Placement is a record of cc.accounts. With an account, events of it are in a
// partition of cc.evt, the first of them at Offset or after it. Without one, every
// account that has events in the partition from Offset on has a record.
//
// The normalizer writes it before the first event that it is about, so a reader
// that has read cc.accounts knows of every event that it may find.
type Placement struct {
	AccountID string `json:"account_id,omitempty"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
}

// Key returns the key of the record.
func (p Placement) Key() string { return p.AccountID + "|" + strconv.Itoa(p.Partition) }

// Value returns the value of the record.
func (p Placement) Value() []byte {
	value, _ := json.Marshal(p) // a struct of strings and numbers always marshals
	return value
}

// ParsePlacement reads a record of cc.accounts.
func ParsePlacement(key, value []byte) (Placement, error) {
	var p Placement
	if err := json.Unmarshal(value, &p); err != nil {
		return p, fmt.Errorf("reading a placement: %w", err)
	}
	account, _, _ := strings.Cut(string(key), "|")
	if p.Key() != string(key) || account != "" && !ValidAccountID(account) ||
		p.Partition < 0 || p.Partition >= MaxPartitions || p.Offset < 0 {
		return p, errPlacement
	}
	return p, nil
}

var errPlacement = errors.New("not a placement of an account")
