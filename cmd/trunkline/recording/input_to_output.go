package recording

import (
	"fmt"
	"io"
	"os"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/atomicfile"
)

// openInput opens the file, or stdin for "-".
func openInput(p *cli.Program, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(p.In), nil
	}
	return os.Open(name)
}

// inputToOutput reads the file ("-": stdin), passes it through convert, which opens, seals or reseals it, and
// writes the result to the output file, atomically, or to stdout for "". operation is for the error.
func inputToOutput(p *cli.Program, operation, file, output string,
	convert func(io.Writer, io.Reader) error) error {
	in, err := openInput(p, file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // opened for reading

	if output == "" {
		err = convert(p.Out, in)
	} else {
		err = atomicfile.Write(output, 0o600, func(w io.Writer) error { return convert(w, in) })
	}

	if err != nil {
		return fmt.Errorf("%s %s: %w", operation, file, err)
	}

	return nil
}
