package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/proxy/tcpproxy"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// etcd is etcd's own server, or its gateway, with the flags that Holdfast gives to them.
func etcd(l line) {
	switch {
	case l.flags["version"] != "":
		fmt.Printf("etcd Version: %s\n", version.Version)
	case len(l.words) == 2 && l.words[0] == "gateway" && l.words[1] == "start":
		gateway(l)
	default:
		member(l)
	}
}

func gateway(l line) {
	listener, err := (&net.ListenConfig{}).Listen(forever(), "tcp", l.flags["listen-addr"])
	if err != nil {
		die("%v", err)
	}
	var endpoints []*net.SRV
	for _, e := range strings.Split(l.flags["endpoints"], ",") {
		host, port, err := net.SplitHostPort(e)
		if err != nil {
			die("%v", err)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			die("%v", err)
		}
		endpoints = append(endpoints, &net.SRV{Target: host, Port: uint16(number)})
	}
	die("%v", (&tcpproxy.TCPProxy{Logger: zap.NewNop(), Listener: listener, Endpoints: endpoints}).Run())
}

func member(l line) {
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel = l.flags["name"], l.flags["data-dir"], "warn"
	c.InitialCluster, c.InitialClusterToken, c.ClusterState = l.flags["initial-cluster"], l.flags["initial-cluster-token"], l.flags["initial-cluster-state"]
	c.AutoCompactionMode, c.AutoCompactionRetention = l.flags["auto-compaction-mode"], l.flags["auto-compaction-retention"]
	for name, into := range map[string]*[]url.URL{
		"listen-client-urls": &c.ListenClientUrls, "advertise-client-urls": &c.AdvertiseClientUrls,
		"listen-peer-urls": &c.ListenPeerUrls, "initial-advertise-peer-urls": &c.AdvertisePeerUrls,
	} {
		u, err := url.Parse(l.flags[name])
		if err != nil {
			die("--%s: %v", name, err)
		}
		*into = []url.URL{*u}
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		die("%v", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, unix.SIGTERM)
	select {
	case <-ended:
		e.Close()
	case err := <-e.Err():
		die("%v", err)
	}
}
