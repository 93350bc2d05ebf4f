package recording

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/retry"
	"trunkline/recording"
	"trunkline/recording/envelope"
)

const (
	scanInterval   = 2 * time.Second
	statusInterval = 10 * time.Second
	minSendWait    = time.Second     // after a failure that stops all files
	maxSendWait    = time.Minute     // of these waits
	refusedWait    = 6 * time.Hour   // before a file that was refused is tried again
	responseWait   = 2 * time.Minute // for a response, beside the time that the body takes
	slowestUpload  = 32 << 10        // bytes per second that an upload is given time for
)

// audioTypes are the content types of the files that are sent, by extension.
var audioTypes = map[string]string{
	".wav": "audio/wav", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".opus": "audio/ogg", ".flac": "audio/flac",
	".m4a": "audio/mp4",
	".au":  "audio/basic", ".gsm": "audio/gsm", ".ulaw": "audio/PCMU", ".alaw": "audio/PCMA", ".g722": "audio/G722",
	".sln": "audio/L16",
}

// sender sends the complete recordings of a folder and removes what is stored. Its only state that
// counts is the folder: it continues after a kill where it was.
type sender struct {
	p        *cli.Program
	server   *cli.ServerFlags
	keyFile  string
	nameFlag string        // --name, which pattern is compiled from
	watch    string        // folder to watch; "": send what is in PATH and end
	settle   time.Duration // how long a file must not have changed

	pattern *regexp.Regexp // of a file's path
	apiKey  string
	url     string
	client  *http.Client

	files       map[string]*pending // by path
	counts      sendCounts
	shownStatus string // the last line that was printed
	shownAt     time.Time
}

// sendCounts counts files by outcome, since the start.
type sendCounts struct{ sent, repeated, refused int }

// pending is a file that is still in the folder.
type pending struct {
	size           int64
	modifiedAt     time.Time
	unchangedSince time.Time // since when size and modified are these
	retryAt        time.Time // zero: at once
	refused        bool
}

func recordingSend(p *cli.Program) *cobra.Command {
	s := &sender{p: p, files: make(map[string]*pending)}
	command := &cobra.Command{
		Use:   "send --watch DIR | send PATH",
		Short: "Send the recordings of a switch to the server, and remove what it has stored",
		Long: `Send the recordings of a switch to the server, and remove what it has stored.

With --watch it runs until it is stopped, on the switch; else it sends what is in PATH and ends.
Folders in DIR are watched too. A file is sent when it has not changed for --settle and no program
has it open (as far as this one may see: run it as the switch's user). It is removed when the
server has stored it, or has it already with the same digest. A server that is away is tried
again for as long as it takes; a file that the server refuses stays, and is tried again after
six hours.

--name is a regular expression on the path of the file in DIR, whose named groups become the id
of the recording (id) and what it knows of its call (call_id, interaction_id,
origination_call_id, agent_id, queue_id, direction, started_at). By default the file's name
without extension is both id and call_id. A file that does not match is left alone.

The API key, with the scope recordings, is ` + cli.EnvAPIKey + `, or in --key-file.`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (s.watch == "") == (len(args) == 0) {
				return cli.Usagef("give --watch DIR or PATH")
			}
			if err := s.prepare(); err != nil {
				return err
			}
			if s.watch != "" {
				return s.watchFolder(cmd.Context())
			}

			return s.sendOnce(cmd.Context(), args[0])
		},
	}

	flags := command.Flags()
	s.server = p.ServerFlags(flags)
	flags.StringVar(&s.watch, "watch", "", "folder to watch")
	flags.StringVar(&s.keyFile, "key-file", "", "file with the API key; empty: "+cli.EnvAPIKey)
	flags.StringVar(&s.nameFlag, "name", `(?:^|/)(?P<id>(?P<call_id>[^/]+))\.[^./]+$`,
		"regular expression on a file's path, with groups id, call_id, …")
	flags.DurationVar(&s.settle, "settle", 5*time.Second, "how long a file must not have changed")

	return command
}

// prepare reads the flags.
func (s *sender) prepare() (err error) {
	s.pattern, err = regexp.Compile(s.nameFlag)
	if err != nil {
		return cli.Usagef("--name: %v", err)
	}

	allowed := append(recording.CallParams(), "id")
	for _, group := range s.pattern.SubexpNames() {
		if group != "" && !slices.Contains(allowed, group) {
			return cli.Usagef("--name: there is no field %s; there are %s", group, strings.Join(allowed, ", "))
		}
	}

	if !slices.Contains(s.pattern.SubexpNames(), "id") {
		return cli.Usagef("--name needs a group (?P<id>…)")
	}

	s.apiKey, err = s.readKey()
	if err != nil {
		return err
	}

	s.url, err = s.server.URL()
	if err != nil {
		return err
	}

	s.client, err = s.server.Client()
	if err != nil {
		return err
	}

	// The client's own would end long uploads.
	s.client.Timeout = 0 // each upload has its own, by the file's size
	return nil
}

func (s *sender) readKey() (string, error) {
	key := s.p.Getenv(cli.EnvAPIKey)
	if s.keyFile != "" {
		text, err := os.ReadFile(s.keyFile)
		if err != nil {
			return "", cli.UsageError(fmt.Errorf("reading the API key: %w", err))
		}
		key = strings.TrimSpace(string(text))
	}

	if key == "" {
		return "", cli.Usagef("recording send needs an API key: %s or --key-file", cli.EnvAPIKey)
	}

	return key, nil
}

// watchFolder sends what comes until ctx ends.
func (s *sender) watchFolder(ctx context.Context) error {
	_, err := os.Stat(s.watch)
	if err != nil {
		return cli.UsageError(err)
	}
	defer s.client.CloseIdleConnections()

	backoff := retry.Backoff{First: minSendWait, Max: maxSendWait}
	for ctx.Err() == nil {
		before := s.counts
		err := s.round(ctx, s.watch)
		s.showStatus(err)
		if err == nil || s.counts != before {
			backoff.Reset()
		}

		wait := scanInterval
		if err != nil {
			wait = max(backoff.Next(), retryAfter(err))
		}

		retry.Sleep(ctx, wait)
	}

	return nil
}

// sendOnce sends the files that are in path, a folder or one file, and ends.
func (s *sender) sendOnce(ctx context.Context, path string) error {
	_, err := os.Stat(path)
	if err != nil {
		return cli.UsageError(err)
	}
	defer s.client.CloseIdleConnections()

	backoff := retry.Backoff{First: minSendWait, Max: maxSendWait}
	for {
		err := s.round(ctx, path)
		s.showStatus(err)
		waiting := s.waiting()

		switch {
		case err == nil && waiting == 0 && s.counts.refused > 0:
			return fmt.Errorf("%d files were refused and are still in %s", s.counts.refused, path)
		case err == nil && waiting == 0:
			return nil
		}

		wait := s.settle/4 + time.Millisecond
		if err != nil {
			wait = max(backoff.Next(), retryAfter(err))
		}

		if !retry.Sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

// waiting returns how many files are neither sent nor refused.
func (s *sender) waiting() (n int) {
	for _, f := range s.files {
		if !f.refused {
			n++
		}
	}
	return n
}

// round looks at the folder and sends the files that are complete. An error is one that would
// stop every other file too.
func (s *sender) round(ctx context.Context, root string) error {
	due, err := s.scan(root, time.Now())
	if err != nil || len(due) == 0 {
		return err
	}

	for _, path := range s.closed(due) {
		err := s.send(ctx, root, path)
		if err := s.applyOutcome(path, err); err != nil {
			return err
		}
		s.showStatus(nil)
	}

	return nil
}

// closed returns those of the files that no program has open, and that are still as they were seen. A
// switch writes a short recording whole as it closes the file, which may be between the two looks:
// Asterisk buffers 32 KiB, and what was seen is the header alone.
func (s *sender) closed(due []string) (closed []string) {
	open := openFiles(due)
	for _, path := range due {
		f := s.files[path]
		info, err := os.Lstat(path)
		if open[path] || err != nil || info.Size() != f.size || !info.ModTime().Equal(f.modifiedAt) {
			f.unchangedSince = time.Now()
			continue
		}

		closed = append(closed, path)
	}

	return closed
}

// applyOutcome removes a file that is stored, and marks one that is refused. It returns other
// errors.
func (s *sender) applyOutcome(path string, err error) error {
	f := s.files[path]
	var refusal *refusedError
	switch {
	case errors.As(err, &refusal):
		if !f.refused {
			s.counts.refused++
			fmt.Fprintf(s.p.Err, "%s: %s\n", cli.Printable(path), cli.Printable(err.Error()))
		}
		f.refused, f.retryAt = true, time.Now().Add(refusedWait)
		return nil
	case err != nil:
		return err
	}

	if f.refused {
		s.counts.refused--
	}

	delete(s.files, path)
	err = os.Remove(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it is stored, but cannot be removed: %w", err)
	}

	return nil
}

// scan notes what has changed in the folder and returns the files that are complete, as far as
// their size and time tell, oldest first.
func (s *sender) scan(root string, now time.Time) (due []string, err error) {
	seen := make(map[string]bool)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != root {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}

		hidden := strings.HasPrefix(entry.Name(), ".") && path != root
		if hidden && entry.IsDir() {
			return fs.SkipDir
		}
		if hidden || !entry.Type().IsRegular() || audioTypes[strings.ToLower(filepath.Ext(path))] == "" {
			return nil
		}

		info, err := entry.Info()
		if err != nil {
			return nil // removed meanwhile
		}

		_, _, ok := s.describe(root, path)
		if !ok {
			return nil
		}

		seen[path] = true
		if s.isDue(path, info, now) {
			due = append(due, path)
		}

		return nil
	})

	for path := range s.files {
		if !seen[path] {
			delete(s.files, path)
		}
	}

	slices.SortFunc(due, func(a, b string) int { return s.files[a].modifiedAt.Compare(s.files[b].modifiedAt) })
	return due, err
}

// isDue notes a file's size and time, and reports whether it is complete and to be tried.
func (s *sender) isDue(path string, info fs.FileInfo, now time.Time) bool {
	f := s.files[path]
	if f == nil || f.size != info.Size() || !f.modifiedAt.Equal(info.ModTime()) {
		// A file that has not changed for long was complete before this program began.
		unchanged := info.ModTime()
		if f != nil || unchanged.After(now) {
			unchanged = now
		}
		f = &pending{size: info.Size(), modifiedAt: info.ModTime(), unchangedSince: unchanged}
		s.files[path] = f
	}

	return now.Sub(f.unchangedSince) >= s.settle && !now.Before(f.retryAt)
}

// describe returns the id and the parameters of a file; ok is false if its name does not match.
func (s *sender) describe(root, path string) (id string, params map[string]string, ok bool) {
	relative, err := filepath.Rel(root, path)
	if err != nil || relative == "." {
		relative = filepath.Base(path)
	}

	match := s.pattern.FindStringSubmatch(filepath.ToSlash(relative))
	if match == nil {
		return "", nil, false
	}

	params = make(map[string]string)
	for i, group := range s.pattern.SubexpNames() {
		if group != "" && match[i] != "" {
			params[group] = match[i]
		}
	}

	id = params["id"]
	delete(params, "id")
	if !envelope.ValidID(id) {
		id = idOf(id)
	}

	return id, params, id != ""
}

// idOf returns a valid id for a text of a file's name.
func idOf(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < 128 && envelope.ValidID("x"+string(r)) {
			return r
		}
		return '_'
	}, strings.TrimLeft(text, "."))
	return text[:min(len(text), 128)]
}

// showStatus prints a line when the state has changed, at most every statusInterval.
func (s *sender) showStatus(err error) {
	status := fmt.Sprintf("%d sent, %d were there, %d refused, %d waiting", s.counts.sent, s.counts.repeated,
		s.counts.refused, s.waiting())
	if err != nil {
		status += ": " + cli.Printable(err.Error())
	}
	if status == s.shownStatus || s.waiting() > 0 && time.Since(s.shownAt) < statusInterval && err == nil {
		return
	}

	s.shownStatus, s.shownAt = status, time.Now()
	fmt.Fprintln(s.p.Out, status)
}
