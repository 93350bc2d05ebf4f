package envelope

import (
	"fmt"
	"io"
)

// Rewrap writes the sealed recording in src to dst with a new key block, so that key opens
// it. The body is copied without being opened; damage of it is detected when the result is
// opened.
//
// It does not protect against a person who has the old header and its key, because these
// give the recording's data key, which does not change. Open and Seal do.
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

	_, err = dst.Write(h.encode())
	if err != nil {
		return nil, fmt.Errorf("writing the header: %w", err)
	}

	_, err = io.Copy(dst, src)
	if err != nil {
		return nil, fmt.Errorf("copying the body: %w", err)
	}

	return h, nil
}
