// Package number writes telephone numbers in E.164, from how they are dialled in
// an account's country. It wraps github.com/nyaruka/phonenumbers (Google's
// libphonenumber and its metadata).
//
// It refuses to guess: what is not surely a telephone number, such as an
// extension, a short code or a SIP user's name, stays as it was dialled.
//
// No goroutines, no locks; a Plan does not change.
package number
