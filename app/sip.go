package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"trunkline/config/settings"
	"trunkline/identity"
	"trunkline/internal/fault"
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

// embeddedSIP is the default address for registering phones.
const embeddedSIP = "127.0.0.1:5060"

// buildSIP opens the SIP server where the roles and settings want one.
func (a *App) buildSIP() (*phones, error) {
	s := a.settings.SIP
	listen, asked := s.Listen, s.Listen != ""
	if !asked && len(a.settings.Kafka.Brokers) == 0 {
		listen = embeddedSIP
	}
	if listen == "" || listen == settings.Off || !a.has(settings.RoleOrigination) && !a.has(settings.RoleAISession) {
		return nil, nil
	}
	bindings, err := sip.NewRedisBindings(a.redis, a.settings.Redis.KeyPrefix)
	if err != nil {
		return nil, fmt.Errorf("sip: %w", err)
	}
	directory := sipDirectory{identity: a.identity, defaultDomain: s.DefaultDomain}
	server, err := sip.New(sip.Config{
		Listen: listen, Advertise: s.Advertise, TrustedNetworks: s.TrustedNetworks, Limits: sip.Limits{MaxCalls: 2 * s.MaxCalls},
	}, directory, bindings, a.registry, a.log)
	if !asked && errors.Is(err, syscall.EADDRINUSE) {
		a.log.Warn("sip: another program has the port, so phones cannot register here: set sip.listen", "address", listen)
		return nil, nil
	}
	if err != nil {
		return nil, taken("sip.listen", err)
	}
	ports, err := a.mediaPorts(server.Addr().Addr())
	if err != nil {
		return nil, fmt.Errorf("sip.rtp_ports: %w", err)
	}
	if port, err := ports.Open(); err != nil {
		a.log.Warn("sip: no media port can be opened, so calls are refused: set sip.rtp_ports to a range that is free", "ports", s.RTPPorts, "error", err)
	} else {
		port.Close()
	}
	a.life.runs("sip", server.Run)
	a.log.Info("sip: phones register here", "address", server.Addr().String())
	return &phones{server: server, ports: ports, directory: directory}, nil
}

func (a *App) mediaPorts(listen netip.Addr) (*rtp.Ports, error) {
	first, last, _ := a.settings.SIP.Ports()
	advertise, err := a.settings.SIP.AdvertisedAddr()
	if err != nil {
		return nil, err
	}
	return rtp.NewPorts(rtp.Config{Listen: listen, Advertise: advertise, Min: first, Max: last}, a.registry, a.log)
}

// sipDirectory is the directory as phones ask it.
type sipDirectory struct {
	identity      *identity.Service
	defaultDomain string
}

// SIPUser implements sip.Directory. A phone that names this server by its
// address, or by anything but an account's domain, is of the default domain.
func (d sipDirectory) SIPUser(ctx context.Context, domain, username string) (sip.User, error) {
	account, ok := d.identity.Tree().ByDomain(domain)
	if !ok {
		if account, ok = d.fallback(); !ok {
			return sip.User{}, fault.NotFound("There is no phone of that name")
		}
	}
	device, err := d.identity.Device(ctx, account.Domain, username)
	return sip.User{AccountID: account.ID, Domain: account.Domain, UserID: device.UserID,
		Extension: device.Extension, HA1: device.HA1}, err
}

func (d sipDirectory) fallback() (identity.Account, bool) {
	if d.defaultDomain != "" {
		return d.identity.Tree().ByDomain(d.defaultDomain)
	}
	return d.identity.Tree().Oldest()
}
