import FerryCore
import Testing

/// When those who wait for the network look again.
@Suite struct NetworkOutagesTests {
    @Test func `looks become rarer the longer it lasts`() {
        var outages = NetworkOutages()
        var now = Duration.seconds(1_000)
        var waits: [Duration] = []
        for _ in 0..<7 {
            let wait = outages.failed("a:443", at: now)
            waits.append(wait)
            now += wait
            #expect(outages.look(at: "a:443", now) == nil)
        }
        #expect(waits == [30, 30, 60, 120, 240, 300, 300].map { .seconds($0) })
    }

    @Test func `of the jobs of one host one looks`() {
        var outages = NetworkOutages()
        for _ in 0..<5 { #expect(outages.failed("a:443", at: .seconds(1)) == .seconds(30)) }
        _ = outages.failed("b:443", at: .seconds(1))
        #expect(outages.look(at: "a:443", .seconds(31)) == nil)
        #expect(outages.look(at: "a:443", .seconds(31)) == .seconds(30))
        #expect(outages.look(at: "a:443", .seconds(32)) == .seconds(30))
        #expect(outages.look(at: "b:443", .seconds(32)) == nil)
        #expect(outages.look(at: "a:443", .seconds(61)) == nil)
    }

    @Test func `an answer ends the outage of its host, once`() {
        var outages = NetworkOutages()
        #expect(outages.answered("a:443") == false)
        _ = outages.failed("a:443", at: .zero)
        _ = outages.failed("b:443", at: .zero)
        #expect(outages.answered("a:443") == true)
        #expect(outages.answered("a:443") == false)
        #expect(!outages.isEmpty)
        #expect(outages.answered("b:443") == true)
        #expect(outages.isEmpty)
    }

    @Test func `after a change of the network every host is worth a look, and one is enough`() {
        var outages = NetworkOutages()
        _ = outages.failed("a:443", at: .zero)
        #expect(outages.look(at: "a:443", .seconds(5)) == .seconds(25))
        outages.changed()
        #expect(outages.look(at: "a:443", .seconds(5)) == nil)
        #expect(outages.look(at: "a:443", .seconds(5)) == .seconds(30))
        #expect(outages.failed("a:443", at: .seconds(6)) == .seconds(30))
    }

    @Test func `after a restart of the service nothing is known, and the first look is free`() {
        var outages = NetworkOutages()
        #expect(outages.look(at: "a:443", .seconds(7)) == nil)
        #expect(outages.look(at: "a:443", .seconds(8)) == .seconds(29))
    }
}
