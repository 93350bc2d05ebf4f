package fault

import "errors"

type permanentError struct{ error }

func (p *permanentError) Unwrap() error { return p.error }

// Permanent marks an error that lasts until an operator changes something: a setting, a
// file, the version of the program. A retry or restart cannot succeed. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether an error in err's chain was marked by Permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}
