package recording

import (
	"fmt"
	"io"
	"os"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/atomicfile"
)

// openInput opens FILE.
func openInput(p *cli.Program, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(p.In), nil
	}
	return os.Open(name)
}

// convert passes FILE through work to the output.
func convert(p *cli.Program, operation, file, output string, work func(io.Writer, io.Reader) error) error {
	in, err := openInput(p, file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // opened for reading

	if output == "" {
		err = work(p.Out, in)
	} else {
		err = atomicfile.Write(output, 0o600, func(w io.Writer) error { return work(w, in) })
	}

	if err != nil {
		return fmt.Errorf("%s %s: %w", operation, file, err)
	}

	return nil
}
