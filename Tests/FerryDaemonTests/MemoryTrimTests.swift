import Testing

@testable import FerryDaemon

@Suite struct MemoryTrimTests {
    @Test func `only the code of files is unmapped`() {
        let maps = """
            55e0c0000000-55e0c0010000 r--p 00000000 fd:00 1311 /usr/bin/ferryd
            55e0c0010000-55e0c0030000 r-xp 00010000 fd:00 1311                     /usr/bin/ferryd
            55e0c0030000-55e0c0040000 rw-p 00030000 fd:00 1311 /usr/bin/ferryd
            55e0c1000000-55e0c1021000 rw-p 00000000 00:00 0 [heap]
            7f1000000000-7f1000001000 r-xp 00000000 00:00 0
            7f1000002000-7f1000003000 r-xp 00000000 fd:00 99 /usr/lib/a library.so
            7f1000004000-7f1000005000 rwxp 00000000 fd:00 99 /usr/lib/odd.so
            7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]
            nonsense
            """
        #expect(
            MemoryTrim.code(maps) == [
                0x55e0_c001_0000..<0x55e0_c003_0000, 0x7f10_0000_2000..<0x7f10_0000_3000,
            ]
        )
        #expect(MemoryTrim.code("").isEmpty)
    }

    @Test func `a process finds its code and lives on without it`() {
        #expect(!MemoryTrim.code(MemoryTrim.maps()).isEmpty)
        MemoryTrim.run()
        #expect(!MemoryTrim.code(MemoryTrim.maps()).isEmpty)
    }
}
