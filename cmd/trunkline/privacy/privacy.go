// Package privacy has the commands that export and erase what is stored of one person.
package privacy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/cdrindex"
	"trunkline/cmd/internal/cli"
	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/report"
	"trunkline/recording"
	"trunkline/settings"
	"trunkline/stats/figures"
)

// Command returns the command privacy with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("privacy", "Export or erase what is stored of one person", exportCommand(p), eraseCommand(p))
}

const commonText = `

The person is a number, exactly as call records have it: repeat the command for each spelling,
such as +4930123456 and 030123456. Its calls are all legs of the calls in which it is caller or
callee; recordings are found by these calls.`

func exportCommand(p *cli.Program) *cobra.Command {
	o := &person{p: p}
	var dir string
	command := &cobra.Command{
		Use:   "export --number N --account A --output DIR",
		Short: "Write the call records and recordings of a number to a folder",
		Long: `Write the call records (calls.jsonl) and recordings (in recordings) of a number to a folder that
does not exist.` + commonText,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RequireFlags(cmd, "number", "account", "output"); err != nil {
				return err
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				return cli.UsageError(err)
			}

			return o.run(cmd.Context(), func(ctx context.Context) error { return o.export(ctx, dir) })
		},
	}

	o.register(command)
	command.Flags().StringVar(&dir, "output", "", "folder to make")
	return command
}

func eraseCommand(p *cli.Program) *cobra.Command {
	o := &person{p: p}
	var yes bool
	command := &cobra.Command{
		Use:   "erase --number N --account A",
		Short: "Erase the call records and recordings of a number",
		Long: `Erase the call records and recordings of a number, and say what remains where, and until
when. It may be interrupted and repeated. Recordings with a legal hold stay, with the records of
their calls.` + commonText,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RequireFlags(cmd, "number", "account"); err != nil {
				return err
			}
			if !yes && !o.confirmed() {
				return errors.New("nothing was erased")
			}

			return o.run(cmd.Context(), o.erase)
		},
	}

	o.register(command)
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return command
}

// person is the number whose data is exported or erased, and what has the data: run opens it.
type person struct {
	p               *cli.Program
	number, account string

	settings   *settings.Settings
	index      *cdrindex.Index
	figures    *figures.Store
	recordings *recording.Service
}

func (o *person) register(command *cobra.Command) {
	command.Flags().StringVar(&o.number, "number", "", "the person's number")
	command.Flags().StringVar(&o.account, "account", "", cli.AccountUsage)
}

func (o *person) confirmed() bool {
	fmt.Fprintf(o.p.Out, "Erase the calls and recordings of %s in account %s? Type yes: ", o.number, o.account)
	answer, _ := bufio.NewReader(o.p.In).ReadString('\n') // the end of the input is no yes
	return strings.TrimSpace(answer) == "yes"
}

// run opens the stores and runs work on them.
func (o *person) run(ctx context.Context, work func(context.Context) error) error {
	return o.p.WithStores(ctx, func(stores cli.Stores) (err error) {
		account, ok := stores.Identity.Directory.Tree().Resolve(o.account)
		if !ok {
			return fmt.Errorf("there is no account %s", o.account)
		}

		o.account, o.settings = account.ID, stores.Settings
		o.index, err = cdrindex.New(ctx, stores.Settings.CDR, stores.DB, prometheus.NewRegistry(), o.p.ToolLog())
		if err != nil {
			return err
		}

		o.figures, err = figures.New(ctx, stores.Settings.Stats.Retention, stores.DB, prometheus.NewRegistry(),
			o.p.ToolLog())
		if err != nil {
			return err
		}

		store, closeStore, err := backend.Recordings(stores.Settings, o.p.ToolLog())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeStore()) }()

		o.recordings, err = recording.New(ctx, recording.Settings{}, recording.Deps{
			DB: stores.DB, Store: store, Keys: stores.Encryption, Audit: stores.Audit,
			Metrics: prometheus.NewRegistry(), Log: o.p.ToolLog(),
		})
		if err != nil {
			return err
		}

		return work(ctx)
	})
}

// recordingsOf returns the recordings of the calls of rows.
func (o *person) recordingsOf(ctx context.Context, rows []event.CDR) (found []recording.Metadata, err error) {
	seen := make(map[string]bool)
	add := func(f recording.Filter) error {
		f.Account, f.PageSize = o.account, 1000
		for {
			page, err := o.recordings.List(ctx, f)
			if err != nil {
				return err
			}

			for _, m := range page.Data {
				if !seen[m.RecordingID] {
					seen[m.RecordingID] = true
					found = append(found, m)
				}
			}

			if page.NextStartKey == "" {
				return nil
			}

			f.StartKey = page.NextStartKey
		}
	}

	interactions := make(map[string]bool)
	for i := range rows {
		// No row lacks these ids (event.CDR.Check): with an empty filter every recording of the account is found.
		err := add(recording.Filter{Call: recording.Call{CallID: rows[i].CallID}})
		if err == nil && !interactions[rows[i].InteractionID] {
			interactions[rows[i].InteractionID] = true
			err = add(recording.Filter{Call: recording.Call{InteractionID: rows[i].InteractionID}})
		}
		if err != nil {
			return nil, err
		}
	}

	return found, nil
}

func (o *person) export(ctx context.Context, dir string) error {
	list, err := os.OpenFile(filepath.Join(dir, "calls.jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	recordingsDir := filepath.Join(dir, "recordings") // of their own: whoever stores one chooses its id
	err = os.Mkdir(recordingsDir, 0o700)
	encoder := json.NewEncoder(list)
	calls, files := 0, 0
	written := make(map[string]bool) // call ids, and "recording " and a recording's id

	for at := (report.Cursor{}); err == nil; {
		var rows []event.CDR
		rows, at, err = o.index.CallsOf(ctx, o.account, o.number, at)
		if err != nil || len(rows) == 0 {
			break
		}

		fresh := rows[:0]
		for _, row := range rows {
			if !written[row.CallID] {
				written[row.CallID] = true
				fresh = append(fresh, row)
			}
		}

		for i := range fresh {
			calls++
			err = errors.Join(err, encoder.Encode(&fresh[i]))
		}

		var recordings []recording.Metadata
		if err == nil {
			recordings, err = o.recordingsOf(ctx, fresh)
		}

		for _, m := range recordings {
			if err == nil && !written["recording "+m.RecordingID] {
				written["recording "+m.RecordingID] = true
				files++
				err = o.exportRecording(ctx, recordingsDir, m.RecordingID)
			}
		}
	}

	if err := errors.Join(err, list.Close()); err != nil {
		return err
	}

	fmt.Fprintf(o.p.Out, "%d call records and %d recordings written to %s\n", calls, files, dir)
	return nil
}

// exportRecording writes the audio of a recording, opened, under its id.
func (o *person) exportRecording(ctx context.Context, dir, id string) (err error) {
	opened, err := o.recordings.Open(ctx, o.account, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()

	file, err := os.OpenFile(filepath.Join(dir, id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	_, err = io.Copy(file, opened)
	return errors.Join(err, file.Close())
}

// erase erases recordings first: an interrupted command finds the rest by the records.
func (o *person) erase(ctx context.Context) error {
	var last int64
	calls, files := 0, 0
	held := make(map[string]bool)

	for at := (report.Cursor{}); ; {
		var rows []event.CDR
		var err error
		rows, at, err = o.index.CallsOf(ctx, o.account, o.number, at)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}

		recordings, err := o.recordingsOf(ctx, rows)
		if err != nil {
			return err
		}

		kept := make(map[string]bool) // interactions and calls of held recordings
		for _, m := range recordings {
			err := o.recordings.Delete(ctx, o.account, m.RecordingID)
			switch fault.KindOf(err) {
			case fault.KindConflict:
				held[m.RecordingID], kept[m.CallID], kept[m.InteractionID] = true, true, true
				continue
			case fault.KindNotFound:
				continue
			}

			if err != nil {
				return err
			}

			files++
		}

		var erased []event.CDR
		for _, row := range rows {
			last = max(last, row.EndedTime, row.Timestamp)
			if !kept[row.CallID] && !kept[row.InteractionID] {
				erased = append(erased, row)
			}
		}

		if err := o.index.EraseCalls(ctx, erased); err != nil {
			return err
		}

		calls += len(erased)
	}

	abandoned, err := o.figures.EraseCaller(ctx, o.account, o.number)
	if err != nil {
		return err
	}

	fmt.Fprintf(o.p.Out, "erased: %d call records, %d recordings and %d abandoned calls\n", calls, files, abandoned)
	for id := range held {
		fmt.Fprintf(o.p.Out, "kept: recording %s has a legal hold; so are the records of its call\n", id)
	}

	return o.reportRest(ctx, last)
}

// reportRest says what remains, where, and until when. last is the end of the last call, in Unix
// seconds.
func (o *person) reportRest(ctx context.Context, last int64) error {
	fmt.Fprintf(o.p.Out,
		"the progress of click-to-call calls has the number that was dialled, until %s after each call (origination.retention)\n",
		o.settings.Origination.Retention)
	fmt.Fprint(o.p.Out,
		`figures have numbers of callers who were not answered alone, on cc.stats for two days; state (cc.state) has the numbers of calls in progress alone;
webhooks have no backlog of their own: what they still have to deliver is on cc.evt
`)

	if last == 0 || !backend.KafkaExists(o.settings) {
		return nil
	}

	return o.p.WithKafka(ctx, func(_ *settings.Settings, cluster *kafka.Cluster) error {
		for _, topic := range []string{event.TopicRaw, event.TopicEvents, event.TopicCDRRaw, event.TopicCDR,
			event.TopicDead} {
			retention, err := cluster.Retention(ctx, topic)
			if err != nil {
				return err
			}

			until := "for ever: set its retention.ms"
			if retention >= 0 {
				until = "until " + time.Unix(last, 0).Add(retention).UTC().Format(time.RFC3339) +
					" and the end of its log segment, or its disk limit"
			}

			fmt.Fprintf(o.p.Out, "kafka %s still has the records of these calls, %s\n", topic, until)
		}

		fmt.Fprintln(o.p.Out, "until then cdr reindex brings the call records back: repeat this command after it")
		return nil
	})
}
