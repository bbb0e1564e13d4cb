# A real systemd as process 1 of a container over this machine's own root. To be sourced; the functions fail loudly.
#
# The root is an overlay in memory: nothing of the machine is changed, and of what it has enabled nothing runs.
# An ext4 of its own holds what a power cut is to hit. Needs root and what lab_check names.

# Fails with one sentence where a lab cannot be made.
lab_check() {
    [ "$(id -u)" = 0 ] || { echo "the systemd lab needs root" >&2; return 1; }
    local program
    for program in systemd-nspawn systemctl systemd-analyze loginctl dbus-daemon nsenter mkfs.ext4 nginx python3; do
        command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null ||
            { echo "the systemd lab needs $program; README.md names the packages" >&2; return 1; }
    done
}

# Makes the root, and a disk that is bound over each folder named. Sets LAB_ROOT.
lab_make() { # FOLDER [PATH...]
    LAB=$1
    LAB_ROOT=$LAB/memory/root
    shift
    LAB_BOUND=("$@")
    mkdir -p "$LAB/memory" "$LAB/mnt"
    mount -t tmpfs -o size=1g,mode=755 ferry-lab "$LAB/memory"
    mkdir "$LAB/memory/upper" "$LAB/memory/work" "$LAB_ROOT"
    mount -t overlay ferry-lab -o "lowerdir=/,upperdir=$LAB/memory/upper,workdir=$LAB/memory/work" "$LAB_ROOT"
    local path
    # Removed and made anew in the overlay: only what the lab enables is started.
    for path in etc/systemd/system etc/init.d etc/rc{2,3,4,5,S}.d etc/cron.d var/lib/systemd var/log/journal \
        etc/ferry; do
        rm -rf "${LAB_ROOT:?}/$path"
        mkdir -p "$LAB_ROOT/$path"
    done
    # An empty one would mean a first boot, which enables what packages preset (machine-id(5)).
    tr -d - </proc/sys/kernel/random/uuid >"$LAB_ROOT/etc/machine-id"
    echo ferry-lab >"$LAB_ROOT/etc/hostname"
    : >"$LAB_ROOT/etc/fstab"
    local unit
    for unit in getty@tty1.service console-getty.service serial-getty@.service systemd-networkd.service \
        systemd-resolved.service systemd-timesyncd.service apt-daily.timer apt-daily-upgrade.timer \
        dpkg-db-backup.timer e2scrub_all.timer fstrim.timer man-db.timer; do
        ln -sf /dev/null "$LAB_ROOT/etc/systemd/system/$unit"
    done
    # Without these options ext4 would hide what was not synced in time (ext4(5)).
    truncate -s 128M "$LAB/disk"
    mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard "$LAB/disk"
    lab_mount_disk
    for path in "${LAB_BOUND[@]}"; do mkdir -p "$LAB/mnt$path" "$LAB_ROOT$path"; done
    lab_bind
}

lab_mount_disk() { mount -t ext4 -o loop,noauto_da_alloc,commit=600 "$LAB/disk" "$LAB/mnt"; }

lab_bind() {
    local path
    for path in "${LAB_BOUND[@]}"; do mount --bind "$LAB/mnt$path" "$LAB_ROOT$path"; done
}

# Boots, and waits until the boot has ended.
lab_boot() {
    # There is no systemd outside to register with; a reboot inside ends nspawn with 133 then.
    setsid bash -c 'while :; do systemd-nspawn "$@" && exit; [ $? = 133 ] || exit; done' ferry-lab \
        --quiet --register=no --keep-unit --boot --private-network --resolv-conf=off --timezone=off \
        --link-journal=no --console=read-only -D "$LAB_ROOT" -M "ferry-lab-$$" \
        </dev/null >>"$LAB/console" 2>&1 &
    LAB_NSPAWN=$!
    lab_wait "${1:-}"
}

# Waits for a boot other than the one named.
lab_wait() { # BOOT_ID
    local now
    for _ in $(seq 600); do
        lab_find || { sleep 0.1; continue; }
        now=$(lab cat /proc/sys/kernel/random/boot_id 2>/dev/null || true)
        if [ -n "$now" ] && [ "$now" != "$1" ]; then
            case $(lab systemctl is-system-running 2>/dev/null || true) in running | degraded) return 0 ;; esac
        fi
        sleep 0.1
    done
    echo "the lab does not boot; its console says:" >&2
    tail -20 "$LAB/console" >&2
    return 1
}

# Finds the container's process 1: loop, nspawn, process 1. Sets LAB_LEADER.
lab_find() {
    local child
    child=$(pgrep -o -P "$LAB_NSPAWN") && LAB_LEADER=$(pgrep -o -P "$child")
}

# Runs a command inside, as root.
lab() {
    nsenter -t "$LAB_LEADER" -m -u -i -n -p -r -w -- env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin \
        HOME=/root LANG=C.UTF-8 TERM=dumb SYSTEMD_PAGER= "$@"
}

# Runs a command inside as a user whose services linger, as in a session.
lab_as() { # USER COMMAND...
    local user=$1
    shift
    lab runuser -u "$user" -- env HOME="/home/$user" XDG_RUNTIME_DIR="/run/user/${LAB_USER_ID:=$(lab id -u "$user")}" "$@"
}

# An orderly reboot.
lab_reboot() {
    local boot
    boot=$(lab cat /proc/sys/kernel/random/boot_id)
    lab systemctl reboot || true
    lab_wait "$boot"
}

# Takes the power away, and boots again: what was not synced is lost.
lab_power_cut() {
    local boot path
    boot=$(lab cat /proc/sys/kernel/random/boot_id)
    # FS_IOC_SHUTDOWN without a last write of the journal: every further write fails from here on.
    python3 - "$LAB/mnt" <<'PY'
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))
PY
    kill -9 "$LAB_LEADER"
    lab_gone
    for path in "${LAB_BOUND[@]}"; do umount -l "$LAB_ROOT$path"; done
    for _ in $(seq 100); do umount "$LAB/mnt" 2>/dev/null && break || sleep 0.1; done
    lab_mount_disk
    lab_bind
    lab_boot "$boot"
}

# Waits until nspawn has ended.
lab_gone() {
    for _ in $(seq 150); do kill -0 "$LAB_NSPAWN" 2>/dev/null || return 0; sleep 0.1; done
    kill -9 "$LAB_NSPAWN" 2>/dev/null || true
}

# Powers off and takes everything away; may be called at any time.
lab_end() {
    if [ -n "${LAB_NSPAWN:-}" ] && kill -0 "$LAB_NSPAWN" 2>/dev/null; then
        lab systemctl poweroff >/dev/null 2>&1 || true
        lab_gone
    fi
    local path
    for path in "${LAB_BOUND[@]}"; do umount -l "$LAB_ROOT$path" 2>/dev/null || true; done
    umount "$LAB/mnt" 2>/dev/null || umount -l "$LAB/mnt" 2>/dev/null || true
    umount -R -l "$LAB_ROOT" 2>/dev/null || true
    umount -l "$LAB/memory" 2>/dev/null || true
    rm -rf --one-file-system "$LAB"
}
