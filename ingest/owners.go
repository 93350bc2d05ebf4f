package ingest

import "trunkline/identity"

// owners answers which account a body's records belong to, asking once per
// account: the records of a body mostly name the same.
type owners struct {
	caller   *identity.Principal
	accounts Accounts
	keys     map[string][]byte // by the name in the record
}

// key is the Kafka key of a record that names the account, "" for none; ok is
// false when the caller may not write to it. An account that does not exist
// looks the same.
func (o *owners) key(named string) (key []byte, ok bool) {
	if key, ok := o.keys[named]; ok {
		return key, true
	}
	account := named
	if named == "" {
		account = o.caller.AccountID
	} else if !o.accounts.MayName(o.caller, named) {
		return nil, false
	}
	key = []byte(account)
	o.keys[named] = key
	return key, true
}
