package cdr

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/retry"
)

const (
	modJSONSuffix = ".cdr.json" // of the files that mod_json_cdr writes
	masterCSV     = "Master.csv"
	importWorkers = 8
	minRetryWait  = 250 * time.Millisecond
	maxRetryWait  = 10 * time.Second
)

// importer sends files of call records to a server.
type importer struct {
	p            *cli.Program
	server       *cli.ServerFlags
	apiKey       string
	deleteStored bool
	retryTimeout time.Duration
	timeZone     string // of Asterisk's files

	url    string
	client *http.Client
}

func cdrImport(p *cli.Program) *cobra.Command {
	i := &importer{p: p}
	command := &cobra.Command{
		Use:   "import PATH",
		Short: "Send the call records that a switch has in files",
		Long: `Send the call records that a switch has in files:

- of FreeSWITCH those that it could not post: the files *` + modJSONSuffix + ` below PATH, the
  err-log-dir of mod_json_cdr, with any value of its parameter encode;
- of Asterisk those of cdr_csv, as after a time in which Trunkline was away: PATH is Master.csv, or
  a directory with it. cdr.conf needs loguniqueid=yes and, where cdr_manager.conf maps the
  sequence, newcdrcolumns=yes: then a record that came by the feed too is one row with its line.
  The times are read in --time-zone, or in UTC with usegmtime=yes.

The command may be repeated: a file that was stored within 24 hours is not stored again,
and a call record that is stored twice is one row of the reports. Files stay
where they are unless --delete is given, which leaves Asterisk's files alone.

The API key is ` + cli.EnvAPIKey + `, or --api-key.`,
		Args: cli.ExactArgs("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if i.apiKey == "" {
				i.apiKey = p.Getenv(cli.EnvAPIKey)
			}
			if i.apiKey == "" {
				return cli.Usagef("cdr import needs an API key: %s or --api-key", cli.EnvAPIKey)
			}

			_, err := time.LoadLocation(i.timeZone)
			if err != nil {
				return cli.Usagef("--time-zone %s: no such time zone", i.timeZone)
			}

			return i.run(cmd.Context(), args[0])
		},
	}

	flags := command.Flags()
	i.server = p.ServerFlags(flags)
	flags.StringVar(&i.apiKey, "api-key", "", "key of the account; better "+cli.EnvAPIKey)
	flags.BoolVar(&i.deleteStored, "delete", false, "delete each file once the server has stored it")
	flags.StringVar(&i.timeZone, "time-zone", "UTC", "zone of the times in Asterisk's files, such as Europe/Berlin")
	flags.DurationVar(&i.retryTimeout, "wait", time.Minute,
		"how long to retry a file while the server is unreachable or busy")

	return command
}

// importCounts counts files by outcome.
type importCounts struct {
	stored, repeated, refused int
}

func (i *importer) run(ctx context.Context, dir string) (err error) {
	i.url, err = i.server.URL()
	if err != nil {
		return err
	}

	i.client, err = i.server.Client()
	if err != nil {
		return err
	}
	defer i.client.CloseIdleConnections()

	files, err := recordFiles(dir)
	if err != nil {
		return cli.UsageError(err)
	}

	counts, err := i.sendAll(ctx, files)
	fmt.Fprintf(i.p.Out, "%d new, %d imported before, %d refused\n", counts.stored, counts.repeated, counts.refused)
	if err != nil {
		return fmt.Errorf("stopped after %d of %d files; repeat the command to continue: %w",
			counts.stored+counts.repeated+counts.refused, len(files), err)
	}

	if counts.refused > 0 {
		return fmt.Errorf("%d files were refused and are still in %s", counts.refused, dir)
	}

	return nil
}

// recordFiles lists the files of mod_json_cdr below dir, and Asterisk's Master.csv. With mod_json_cdr's
// parameter rotate they are in subdirectories named by time. Of the files of cdr_csv a directory gives
// Master.csv alone: those of account codes have the same lines.
func recordFiles(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}

		ours := strings.HasSuffix(entry.Name(), modJSONSuffix) || entry.Name() == masterCSV
		if ours || path == dir && strings.HasSuffix(path, csvSuffix) {
			files = append(files, path)
		}

		return err
	})

	return files, err
}

// sendAll sends several files at a time until all are sent, or one fails for a reason that would
// stop the others too.
func (i *importer) sendAll(ctx context.Context, files []string) (counts importCounts, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	progress := i.p.Progress("files")
	toSend := make(chan string)
	var mu sync.Mutex
	var workers sync.WaitGroup

	for range min(importWorkers, len(files)) {
		workers.Go(func() {
			for file := range toSend {
				replayed, err := i.send(ctx, file)
				mu.Lock()
				malformed := malformedError{}

				switch refusal := (*cli.HTTPError)(nil); {
				// The key is the digest of the content (post): the server had it within 24 hours.
				case err == nil && replayed:
					counts.repeated++
				case err == nil:
					counts.stored++
				case errors.As(err, &malformed), errors.As(err, &refusal) && isRecordError(refusal.Status):
					counts.refused++
					i.p.Printf("%s: %v", file, err)
				default:
					cancel(fmt.Errorf("%s: %w", file, err))
				}

				progress.Report(counts.stored+counts.repeated+counts.refused, len(files))
				mu.Unlock()
			}
		})
	}

	for _, file := range files {
		select {
		case toSend <- file:
			continue
		case <-ctx.Done():
		}
		break
	}

	close(toSend)
	workers.Wait()
	return counts, context.Cause(ctx)
}

// isRecordError reports whether a status concerns one record only, so that others may still be
// accepted.
func isRecordError(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict, http.StatusRequestEntityTooLarge:
		return true
	}
	return false
}

// send sends one file. replayed is true if the server had stored all of it before.
func (i *importer) send(ctx context.Context, file string) (replayed bool, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}

	if strings.HasSuffix(file, csvSuffix) {
		return i.sendMasterCSV(ctx, content)
	}

	replayed, err = i.sendBody(ctx, modJSONBody(file, content))
	if err == nil && i.deleteStored {
		err = os.Remove(file)
	}

	return replayed, err
}

// sendMasterCSV sends the lines of one of Asterisk's files.
func (i *importer) sendMasterCSV(ctx context.Context, content []byte) (replayed bool, err error) {
	bodies, err := readMasterCSV(content, i.timeZone)
	if err != nil {
		return false, err
	}

	replayed = true
	for _, lines := range bodies {
		before, err := i.sendBody(ctx, importRequest{path: "asterisk.cdr", contentType: "application/x-ndjson",
			content: lines})
		if err != nil {
			return false, err
		}
		replayed = replayed && before
	}

	return replayed, nil
}

// importRequest is one request: the path is that below /api/v2/ingest/.
type importRequest struct {
	path, contentType string
	content           []byte
}

// sendBody sends one body until it is stored, refused, or i.retryTimeout has passed.
func (i *importer) sendBody(ctx context.Context, b importRequest) (replayed bool, err error) {
	began := time.Now()
	backoff := retry.Backoff{First: minRetryWait, Max: maxRetryWait}
	for {
		replayed, err = i.post(ctx, b)
		if err == nil {
			return replayed, nil
		}

		wait := backoff.Next()
		var refusal *cli.HTTPError
		if errors.As(err, &refusal) {
			if refusal.Status < 500 && refusal.Status != http.StatusTooManyRequests {
				return false, err
			}
			wait = max(wait, refusal.RetryAfter)
		}

		if time.Since(began)+wait > i.retryTimeout || !retry.Sleep(ctx, wait) {
			return false, err
		}
	}
}

// modJSONBody returns the body that mod_json_cdr would have posted.
func modJSONBody(file string, content []byte) importRequest {
	record := bytes.TrimSpace(content)
	contentType := "application/json"
	if !bytes.HasPrefix(record, []byte("{")) { // encode=true or base64
		record = append([]byte("cdr="), record...)
		contentType = "application/x-www-form-urlencoded"
	}
	uuid := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(file), modJSONSuffix), "a_")
	return importRequest{"freeswitch.json_cdr?uuid=" + url.QueryEscape(uuid), contentType, record}
}

// post posts a body once.
func (i *importer) post(ctx context.Context, b importRequest) (replayed bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.url+"/api/v2/ingest/"+b.path,
		bytes.NewReader(b.content))
	if err != nil {
		return false, err
	}

	sum := sha256.Sum256(b.content)
	request.Header.Set("Content-Type", b.contentType)
	request.Header.Set("X-API-Key", i.apiKey)
	request.Header.Set("Idempotency-Key", "cdr-import-"+hex.EncodeToString(sum[:]))
	header, _, err := cli.FetchWithHeader(i.client, request, http.StatusAccepted)

	return err == nil && header.Get("Idempotent-Replayed") != "", err
}
