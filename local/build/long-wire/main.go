// A long wire for measurements: two network devices, and each packet that enters one leaves the other after a delay. For kernels
// that cannot delay packets themselves. Both devices are removed when the process ends.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// One packet is as large as on loopback, so that the wire adds latency but does not limit throughput.
const largest = 65535

// More than TCP ever has in flight in a few milliseconds.
const onTheWay = 4096

type packet struct {
	due  time.Time
	data []byte
}

func open(name string) (*os.File, error) {
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	var request struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:15], name)
	request.flags = syscall.IFF_TUN | syscall.IFF_NO_PI
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TUNSETIFF, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return nil, fmt.Errorf("create the device %s: %w", name, errno)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func carry(from io.Reader, to io.Writer, delay time.Duration) {
	queue := make(chan packet, onTheWay)
	go func() {
		for next := range queue {
			time.Sleep(time.Until(next.due))
			_, _ = to.Write(next.data) // a device that is down drops packets, as wires do
		}
	}()
	buffer := make([]byte, largest)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			log.Fatal(err)
		}
		queue <- packet{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)}
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: long-wire <device> <device> <delay each way>")
	}
	delay, err := time.ParseDuration(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	near, err := open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	far, err := open(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	go carry(near, far, delay)
	carry(far, near, delay)
}
