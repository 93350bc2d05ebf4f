package stats

import (
	"encoding/json"
)

// WordAlert and WordCall are the kinds, in keys of records on cc.stats, that ParseAlert and
// ParseAbandoned parse.
const (
	WordAlert = "alert"
	WordCall  = "open_call"
)

// StoredAlert is an alert of a record on cc.stats. EndedMS is 0 of one that has not ended.
type StoredAlert struct {
	AccountID          string
	StartedMS, EndedMS int64
	View               AlertView
}

// ParseAlert parses an alert's record. begun is false of one that has not begun.
func ParseAlert(recordKey string, value []byte) (stored StoredAlert, begun bool, err error) {
	k, err := parseKey(recordKey)
	if err != nil {
		return stored, false, err
	}
	a := &alert{header: header{key: k}}
	err = json.Unmarshal(value, a)
	return StoredAlert{k.account.Value(), a.StartedMS, a.EndedMS, a.view()}, a.StartedMS != 0, err
}

// StoredCall is a call of a record on cc.stats. TakenBack is true of one that had been told as
// abandoned, and was not.
type StoredCall struct {
	AccountID, CallID, QueueID, InteractionID, Caller string
	EnteredMS, AbandonedMS, WaitMS                    int64
	Abandoned, TakenBack, Short                       bool
}

// ParseAbandoned parses a call's record.
func ParseAbandoned(recordKey string, value []byte) (stored StoredCall, err error) {
	k, err := parseKey(recordKey)
	if err != nil {
		return stored, err
	}

	c := &call{}
	err = json.Unmarshal(value, c)
	return StoredCall{
		AccountID: k.account.Value(), CallID: k.id.Value(), QueueID: c.Queue, InteractionID: c.Interaction,
		Caller:    c.Caller,
		EnteredMS: c.EnteredMS, AbandonedMS: c.EndedMS, WaitMS: c.WaitedMS, Abandoned: c.Abandoned,
		TakenBack: c.TakenBack, Short: c.Short,
	}, err
}
