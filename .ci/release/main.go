// Command release makes the parts of a release for which there is no program: the image as an OCI
// archive, without Docker, and a minisign signature.
//
// usage: release image VERSION FILE ARCH=FOLDER…
//
//	release sign KEY FILE    writes FILE.minisig; the key's password is in RELEASE_KEY_PASSWORD
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"aead.dev/minisign"
)

var errUsage = errors.New("usage: release image VERSION FILE ARCH=FOLDER… | release sign KEY FILE")

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) > 3 && args[0] == "image":
		return writeImage(args[1], args[2], args[3:])
	case len(args) == 3 && args[0] == "sign":
		return sign(args[1], args[2])
	}
	return errUsage
}

// sign writes the signature of a file beside it.
func sign(keyFile, file string) error {
	key, err := minisign.PrivateKeyFromFile(os.Getenv("RELEASE_KEY_PASSWORD"), keyFile)
	if err != nil {
		return fmt.Errorf("reading the key %s: %w", keyFile, err)
	}

	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	comment := "timestamp:" + fmt.Sprint(time.Now().Unix()) + "\tfile:SHA256SUMS"
	signature := minisign.SignWithComments(key, content, comment, "signature of the checksums of a Trunkline release")
	return os.WriteFile(file+".minisig", signature, 0o644)
}
