// Package number writes telephone numbers in E.164, from how they are dialled in
// an account's country. It wraps github.com/nyaruka/phonenumbers (Google's
// libphonenumber and its metadata).
//
// Text that is not certainly a telephone number, such as an extension, a short
// code or a SIP user's name, stays as it was dialled.
//
// Abroad and Premium classify what a call can cost. In doubt they choose the costly
// class: a number that may leave the account's country does.
//
// No goroutines, no locks; a Plan does not change.
package number
