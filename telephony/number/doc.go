// Package number converts telephone numbers as dialled in an account's country to E.164. It wraps
// github.com/nyaruka/phonenumbers (Google's libphonenumber and its metadata).
//
// Text that is not clearly a telephone number, such as an extension, a short code or a SIP user's name,
// is returned unchanged.
//
// Abroad and Premium classify the cost of a call. In doubt they return true: a number that may be
// outside the account's country counts as outside.
//
// The package has no goroutines and no locks. A Plan is immutable.
package number
