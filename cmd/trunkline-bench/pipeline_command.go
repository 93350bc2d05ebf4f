package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
)

// pipelineBench holds the flags of pipeline.
type pipelineBench struct {
	bench

	batch, connections int
	callRecordRate     float64 // per second
	reports            bool
	wait               time.Duration
}

// errPipelineFaults ends the command after the report has listed the faults.
var errPipelineFaults = errors.New("records were lost, repeated, out of order or dead-lettered: see the report")

func pipelineCommand(p *cli.Program) *cobra.Command {
	b := pipelineBench{bench: bench{p: p}}
	command := &cobra.Command{
		Use:   "pipeline",
		Short: "Publish events, follow them on Kafka, and report throughput, latency and losses",
		Long: `Publish events, follow them on Kafka, and report throughput, latency and losses.

Events enter over the public ingest, or go straight to cc.raw, in batches; each
is then looked for on cc.evt. Latency is from the time a batch was due to the
time its record was read there. Exit code 1 means that records were lost,
repeated, out of order, or are dead letters. With --call-records, call records
take the same way to the cdr topic, and with --reports some of them are looked
up until the report API has them.

--rate 0 sends as fast as the server accepts: the result is the throughput of
ingest and of the normalized topic, and latency is that of the backlog. --climb 200ms
finds the highest rate with a p99 below 200 ms.

It reads Kafka: that of the settings, or of the server on --data-dir. Without
--username, accounts are made in the database of the settings, and deleted at
the end. The events and call records stay, on the topics and in the reports.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.validate(); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	}

	flags := command.Flags()
	b.addFlags(flags, 1000, "events per second of all accounts together; 0: as fast as possible")
	b.addEventFlags(flags, 16,
		"number of accounts to publish events of, in turn; the batches of one account are sent in sequence")
	flags.StringVar(&b.through, "through", throughHTTP,
		"how events are published: http, or kafka to write to the raw topics directly")
	flags.IntVar(&b.batch, "batch", 10, "events per POST")
	flags.IntVar(&b.connections, "connections", 16, "concurrent POSTs; no more than --accounts")
	flags.Float64Var(&b.callRecordRate, "call-records", 0,
		"call records per second, in addition to the events; 0: none")
	flags.BoolVar(&b.reports, "reports", false,
		"with --call-records, look some of them up until the report API has them")
	flags.DurationVar(&b.wait, "wait", 10*time.Second,
		"at the end, time without an event after which missing ones count as lost")

	return cli.ShowSettings(command)
}

func (b *pipelineBench) validate() error {
	if err := b.validateEvents(); err != nil {
		return err
	}

	switch {
	case b.through != throughKafka && b.through != throughHTTP:
		return cli.Usagef("--through is http or kafka, not %q", b.through)
	case b.batch < 1 || b.batch > load.MaxBatch:
		return cli.Usagef("--batch must be from 1 to %d, is %d", load.MaxBatch, b.batch)
	case b.batch*b.size > maxBatchBytes:
		return cli.Usagef("--batch times --size must be at most %d bytes, is %d", maxBatchBytes, b.batch*b.size)
	case b.connections < 1 || b.connections > 1000:
		return cli.Usagef("--connections must be from 1 to 1000, is %d", b.connections)
	case !(b.callRecordRate >= 0 && b.callRecordRate <= maxRate):
		return cli.Usagef("--call-records must be from 0 to %.0f, is %v", maxRate, b.callRecordRate)
	case b.reports && b.callRecordRate == 0:
		return cli.Usagef("--reports needs --call-records")
	case b.wait <= 0:
		return cli.Usagef("--wait must be above 0, is %v", b.wait)
	}

	return b.validateShared(true)
}

// maxBatchBytes is the largest body of one POST, in bytes: below the limit of ingest.
const maxBatchBytes = 24 << 20
