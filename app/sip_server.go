package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"trunkline/internal/fault"
	"trunkline/settings"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// phones holds the SIP server that phones register with, and the ports of
// media.
type phones struct {
	server    *sip.Server
	ports     *rtp.Ports
	directory sip.Directory
}

// buildSIP opens the SIP server if the roles and settings need one.
func buildSIP(b *base) (*phones, error) {
	s := b.settings.SIP.Server
	configured := s.Listen != ""
	s.Listen = s.ListenAddress(len(b.settings.Kafka.Brokers) == 0)
	if s.Listen == "" || !b.hasRole(settings.RoleOrigination) && !b.hasRole(settings.RoleAISession) {
		return nil, nil
	}

	bindings, err := sip.NewRedisBindings(b.redis, b.settings.Redis.KeyPrefix)
	if err != nil {
		return nil, fmt.Errorf("sip: %w", err)
	}

	directory := sipDirectory{directory: b.identity.Directory, credentials: b.identity.Credentials,
		defaultDomain: s.DefaultDomain}
	listenTLS, dialTLS, err := sipTLS(b.process)
	if err != nil {
		return nil, err
	}

	// The SIP server counts legs, of which a call has two.
	server, err := sip.New(sip.Config{
		Settings: s, TLS: listenTLS, DialTLS: dialTLS, Limits: sip.Limits{MaxCalls: 2 * b.settings.SIP.Calls.MaxCalls},
	}, directory, bindings, b.registry, b.log)
	// Nobody has asked for the default port: the process is of use without phones.
	if !configured && errors.Is(err, syscall.EADDRINUSE) {
		b.log.Warn("sip: the port is in use by another program, so phones cannot register: set sip.listen",
			"address", s.Listen)
		return nil, nil
	}
	if err != nil {
		return nil, listenError("sip.listen", err)
	}

	ports, err := mediaPorts(b.process, server.Addr().Addr())
	if err != nil {
		return nil, fmt.Errorf("sip.rtp_ports: %w", err)
	}

	// Opened only to say at the start that calls will fail.
	port, err := ports.Open()
	if err != nil {
		b.log.Warn("sip: no media port can be opened, so calls are refused: set sip.rtp_ports to a range that is free",
			"ports", b.settings.SIP.Media.Ports, "error", err)
	} else {
		port.Close()
	}

	b.lifecycle.addRun("sip", server.Run)
	b.lifecycle.addRun("registrations of deleted accounts", func(ctx context.Context) error {
		return bindings.RemoveDeleted(ctx, b.identity.Directory.ListDeletedAccounts, b.log)
	})
	b.log.Info("sip: phones register here", "address", server.Addr().String(), "tls_port", server.TLSPort())

	return &phones{server: server, ports: ports, directory: directory}, nil
}

// sipTLS returns the configurations of the TLS listener and of connections to the trunk; nil without TLS.
func sipTLS(p *process) (listenTLS, dialTLS *tls.Config, err error) {
	if p.settings.SIP.Server.TLSListen == "" {
		return nil, nil, nil
	}

	listenTLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.certificate.Get}
	trunk := p.settings.SIP.Calls.Trunk
	if trunk.Transport != "tls" {
		return listenTLS, nil, nil
	}

	host, _, err := net.SplitHostPort(trunk.Address)
	if err != nil {
		host = trunk.Address // without a port
	}

	dialTLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: strings.Trim(host, "[]")}
	if trunk.CAFile == "" {
		return listenTLS, dialTLS, nil
	}

	text, err := os.ReadFile(trunk.CAFile)
	if err != nil {
		return nil, nil, fault.Permanent(fmt.Errorf("sip.trunk.ca_file: %w", err))
	}

	dialTLS.RootCAs = x509.NewCertPool()
	if !dialTLS.RootCAs.AppendCertsFromPEM(text) {
		return nil, nil, fault.Permanent(errors.New("sip.trunk.ca_file: no certificate in PEM"))
	}

	return listenTLS, dialTLS, nil
}

func mediaPorts(p *process, listen netip.Addr) (*rtp.Ports, error) {
	first, last, _ := p.settings.SIP.Media.PortRange()
	advertise, err := p.settings.SIP.Server.AdvertisedAddr()
	if err != nil {
		return nil, err
	}
	return rtp.NewPorts(rtp.Config{Listen: listen, Advertise: advertise, MinPort: first, MaxPort: last}, p.registry,
		p.log)
}
