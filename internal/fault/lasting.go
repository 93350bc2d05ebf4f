package fault

import "errors"

// lasting marks an error that trying the same again cannot mend.
type lasting struct{ error }

func (l *lasting) Unwrap() error { return l.error }

// Lasting says of an error at start that somebody has to mend something before
// the next one: a setting, a file, a newer schema. A supervisor need not try
// again. nil stays nil.
func Lasting(err error) error {
	if err == nil {
		return nil
	}
	return &lasting{err}
}

// IsLasting says whether anything in err's chain was marked by Lasting.
func IsLasting(err error) bool {
	var l *lasting
	return errors.As(err, &l)
}
