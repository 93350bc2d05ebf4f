package fault

import "errors"

type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// Permanent marks an error that stays until an operator changes something: a
// setting, a file, the version of the program. A supervisor need not try
// again. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// IsPermanent reports whether an error in err's chain was marked by Permanent.
func IsPermanent(err error) bool {
	var p *permanent
	return errors.As(err, &p)
}
