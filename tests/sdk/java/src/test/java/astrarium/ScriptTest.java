package astrarium;

import static astrarium.Fixture.answered;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.CosmosScripts;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import java.util.List;

/**
 * The life of scripts as resources. What they do is tested in StoredProcedureTest, TriggerTest and UserDefinedFunctionTest.
 *
 * <p>The SDK addresses a replace by the self link of what was read before.
 */
class ScriptTest {
    private static final String BODY = "function () { return 1; }";
    private static final String OTHER_BODY = "function () { return 'ä 鱀'; }";

    @OverBothSchemes
    void storedProcedures(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosScripts scripts = fixture.container("scripts").getScripts();
            var one = scripts.getStoredProcedure("one");
            refused(404, one::read);
            answered(201, scripts.createStoredProcedure(new CosmosStoredProcedureProperties("one", BODY)));
            refused(409, () -> scripts.createStoredProcedure(new CosmosStoredProcedureProperties("one", BODY)));
            var read = answered(200, one.read()).getProperties();
            assertEquals(BODY, read.getBody());
            var replaced = one.replace(read.setBody(OTHER_BODY));
            assertEquals(OTHER_BODY, answered(200, replaced).getProperties().getBody());
            scripts.createStoredProcedure(new CosmosStoredProcedureProperties("two", BODY));
            var ids = scripts.readAllStoredProcedures().stream().map(CosmosStoredProcedureProperties::getId).sorted().toList();
            assertEquals(List.of("one", "two"), ids);
            answered(204, one.delete());
            refused(404, one::read);
        }
    }

    @OverBothSchemes
    void triggers(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosScripts scripts = fixture.container("scripts").getScripts();
            var properties = new CosmosTriggerProperties("one", BODY)
                .setTriggerType(TriggerType.PRE)
                .setTriggerOperation(TriggerOperation.CREATE);
            answered(201, scripts.createTrigger(properties));
            refused(409, () -> scripts.createTrigger(properties));
            var one = scripts.getTrigger("one");
            var read = answered(200, one.read()).getProperties();
            assertEquals(TriggerType.PRE, read.getTriggerType());
            assertEquals(TriggerOperation.CREATE, read.getTriggerOperation());
            var changed = read.setBody(OTHER_BODY).setTriggerType(TriggerType.POST).setTriggerOperation(TriggerOperation.ALL);
            assertEquals(OTHER_BODY, answered(200, one.replace(changed)).getProperties().getBody());
            assertEquals(TriggerType.POST, one.read().getProperties().getTriggerType());
            assertEquals(1, scripts.readAllTriggers().stream().count());
            answered(204, one.delete());
            refused(404, one::read);
        }
    }

    @OverBothSchemes
    void userDefinedFunctions(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosScripts scripts = fixture.container("scripts").getScripts();
            answered(201, scripts.createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("one", BODY)));
            refused(409, () -> scripts.createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("one", BODY)));
            var one = scripts.getUserDefinedFunction("one");
            var read = answered(200, one.read()).getProperties();
            assertEquals(BODY, read.getBody());
            var replaced = one.replace(read.setBody(OTHER_BODY));
            assertEquals(OTHER_BODY, answered(200, replaced).getProperties().getBody());
            assertEquals(1, scripts.readAllUserDefinedFunctions().stream().count());
            answered(204, one.delete());
            refused(404, one::read);
        }
    }
}
