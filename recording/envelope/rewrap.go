package envelope

import (
	"fmt"
	"io"
)

// Rewrap writes the sealed recording in src to dst with a new key block: the same body,
// which key opens. The body is copied unopened: earlier damage is still detected when it
// is opened.
//
// It does not protect against a person who has the old header and its key: they have
// this recording's data key. Only opening and sealing again does.
func Rewrap(dst io.Writer, src io.Reader, want Expected, rootOf RootFinder, key Key) (*Header, error) {
	h, err := Inspect(src)
	if err != nil {
		return nil, err
	}
	dek, err := h.openKey(want, rootOf)
	if err != nil {
		return nil, err
	}
	defer clear(dek[:])
	if err := h.setKey(dek, key); err != nil {
		return nil, err
	}
	if _, err := dst.Write(h.encode()); err != nil {
		return nil, fmt.Errorf("writing the header: %w", err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		return nil, fmt.Errorf("copying the body: %w", err)
	}
	return h, nil
}
