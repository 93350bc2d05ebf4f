package ingest

import "trunkline/identity"

// accountKeys looks up the Kafka keys of a body's records, once for each account
// named.
type accountKeys struct {
	caller   *identity.Principal
	accounts Accounts
	keys     map[string][]byte // by the account named in the record
}

// keyFor returns the Kafka key of a record of the named account; "" means the caller's account. ok is
// false when the account does not exist or the caller may not write to it.
func (o *accountKeys) keyFor(named string) (key []byte, ok bool) {
	if key, ok := o.keys[named]; ok {
		return key, true
	}

	account := named
	if named == "" {
		account = o.caller.AccountID
	} else if !o.accounts.MayIngestFor(o.caller, named) {
		return nil, false
	}

	key = []byte(account)
	o.keys[named] = key
	return key, true
}
