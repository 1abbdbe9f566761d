package hosts

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// lastTap is the last part of the address of what a tap is for. Hosts have lower ones.
const lastTap = 201

// Tap is a link of the lab's network that another program holds the end of, such as a virtual machine.
type Tap struct {
	// Link is the name of the device on this machine.
	Link string
	// IP is the address, in a network of 24 bits, that whoever holds the end is to have, and MAC its hardware address.
	IP  string
	MAC net.HardwareAddr
}

// Tap makes the lab's tap; it has one. It goes with the lab.
func (l *Lab) Tap(t T) Tap {
	t.Helper()
	tap, err := l.makeTap()
	if err != nil {
		t.Fatalf("hosts: %v", err)
	}
	return tap
}

func (l *Lab) makeTap() (Tap, error) {
	ip := address(l.state.Subnet, lastTap)
	tap := Tap{Link: l.state.Prefix + "tap", IP: ip, MAC: hardwareAddress(ip)}
	bridge, err := netlink.LinkByName(l.state.Prefix)
	if err != nil {
		return tap, fmt.Errorf("while finding the bridge: %w", err)
	}
	link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: tap.Link, MasterIndex: bridge.Attrs().Index}, Mode: netlink.TUNTAP_MODE_TAP}
	if err := netlink.LinkAdd(link); err != nil {
		return tap, fmt.Errorf("while making the tap %s: %w", tap.Link, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return tap, fmt.Errorf("while starting the tap %s: %w", tap.Link, err)
	}
	return tap, nil
}
